import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import type { Machine, Signal } from "@nodeyard/telemetry/machine";
import { expect, test } from "vitest";
import { ProcessError, STOP_MS, type Stoppable, untilStopped } from "../src/index.ts";

class Exited extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

function machine() {
  const clock = new VirtualClock();
  let send: Parameters<Machine["onSignal"]>[0] | undefined;
  const exits: number[] = [];
  const of: Machine = {
    clock,
    random: seededRandom(1),
    env: {},
    home: "/",
    user: "ann",
    hostname: "here",
    isRoot: false,
    pid: 1,
    onSignal(fn) {
      send = fn;
      return () => {
        send = undefined;
      };
    },
    onDump: () => () => {},
    eventLoop: async () => ({ utilization: 0, delayMs: 0 }),
    memory: () => ({ resident: 0, heap: 0 }),
    report: () => {},
    exit(code): never {
      exits.push(code);
      throw new Exited(code);
    },
  };
  const signal = (name: Signal) => send?.(name);
  return { of, clock, signal, exits, listens: () => send !== undefined };
}

/** Work that has started at once, and is closed by `close`. */
function closedBy(close: () => Promise<void>): () => Promise<Stoppable> {
  return async () => ({ close });
}

test("runs until a signal, then stops in good order and listens no more", async () => {
  const { of, signal, exits, listens } = machine();
  let stopped = false;
  const closing = closedBy(async () => {
    stopped = true;
  });
  const running = untilStopped(of, memoryLog(), closing);
  expect(stopped).toBe(false);
  signal("SIGTERM");
  expect(await running).toBe(0);
  expect([stopped, exits, listens()]).toEqual([true, [], false]);
});

test("a second signal ends it at once", async () => {
  const { of, signal, exits } = machine();
  void untilStopped(
    of,
    memoryLog(),
    closedBy(() => new Promise(() => {})),
  );
  signal("SIGINT");
  expect(exits).toEqual([]);
  expect(() => signal("SIGINT")).toThrow(Exited);
  expect(exits).toEqual([1]);
});

test("a stop that hangs is ended by force", async () => {
  const { of, clock, signal, exits } = machine();
  const log = memoryLog();
  void untilStopped(
    of,
    log,
    closedBy(() => new Promise(() => {})),
  );
  signal("SIGTERM");
  await clock.advance(STOP_MS - 1);
  expect(exits).toEqual([]);
  await expect(clock.advance(1)).rejects.toThrow(Exited);
  expect(exits).toEqual([1]);
  expect(log.lines.at(-1)).toMatchObject({ level: "error", text: "stopping takes too long; exiting now" });
});

test("a stop that fails says so", async () => {
  const { of, signal, listens } = machine();
  const failing = closedBy(() => Promise.reject(new Error("the disk is full")));
  const running = untilStopped(of, memoryLog(), failing);
  signal("SIGTERM");
  await expect(running).rejects.toThrow("the disk is full");
  expect(listens()).toBe(false);
});

test("SIGHUP reloads what runs, also when it came during the start, and never stops it; without a reload it stops", async () => {
  const { of, signal } = machine();
  const log = memoryLog();
  const started = Promise.withResolvers<Stoppable>();
  let [reloads, closed] = [0, 0];
  const close = async () => void closed++;
  const running = untilStopped(of, log, () => started.promise);
  signal("SIGHUP");
  started.resolve({ reload: async () => void reloads++, close });
  await expect.poll(() => reloads).toBe(1);
  signal("SIGHUP");
  expect([reloads, closed]).toEqual([2, 0]);
  expect(log.lines[0]).toMatchObject({ facts: { signal: "SIGHUP" }, text: "reloading the configuration" });
  signal("SIGTERM");
  expect([await running, closed]).toEqual([0, 1]);

  const other = machine();
  const plain = untilStopped(other.of, memoryLog(), closedBy(close));
  await Promise.resolve();
  other.signal("SIGHUP");
  expect([await plain, closed]).toEqual([0, 2]);
});

test("a fatal failure closes the process, and is reported", async () => {
  const { of } = machine();
  const log = memoryLog();
  let closed = 0;
  const failed = Promise.resolve(new ProcessError("process.store_lost", "the disk is full"));
  const code = await untilStopped(of, log, async () => ({ failed, close: async () => void closed++ }));
  expect([code, closed]).toEqual([1, 1]);
  expect(log.lines.map(({ text }) => text)).toEqual(["the disk is full", "stopped"]);
});

test("a signal while it starts ends the start, and is no failure", async () => {
  const { of, signal, exits, listens } = machine();
  const log = memoryLog();
  const starting = (stopping: AbortSignal) =>
    new Promise<Stoppable>((_, reject) => stopping.addEventListener("abort", () => reject(stopping.reason)));
  const running = untilStopped(of, log, starting);
  signal("SIGTERM");
  expect(await running).toBe(0);
  expect([exits, listens()]).toEqual([[], false]);
  expect(log.lines.map(({ text }) => text)).toEqual(["stopping; a second signal exits at once", "stopped"]);
});

test("a start that a signal comes too late for is closed", async () => {
  const { of, signal } = machine();
  const started = Promise.withResolvers<Stoppable>();
  let closed = 0;
  const running = untilStopped(of, memoryLog(), () => started.promise);
  signal("SIGTERM");
  started.resolve({ close: async () => void closed++ });
  expect([await running, closed]).toEqual([0, 1]);
});

test("a start that does not heed the signal is ended by force; one that fails says so", async () => {
  const { of, clock, signal } = machine();
  void untilStopped(of, memoryLog(), () => new Promise(() => {}));
  signal("SIGTERM");
  await expect(clock.advance(STOP_MS)).rejects.toThrow(Exited);
  const { of: other, listens } = machine();
  const failing = untilStopped(other, memoryLog(), () => Promise.reject(new Error("no such file")));
  await expect(failing).rejects.toThrow("no such file");
  expect(listens()).toBe(false);
});

test("a process that is stuck does not work for its service manager, and says why", async () => {
  const { of, signal } = machine();
  let works: (() => boolean) | undefined;
  const report: Machine["report"] = (state, given) => {
    if (state === "ready") works = given;
  };
  const log = memoryLog();
  let why: string | undefined;
  const running = untilStopped({ ...of, report }, log, async () => ({
    stuck: () => why,
    close: async () => {},
  }));
  while (works === undefined) await Promise.resolve();
  expect(works()).toBe(true);
  why = "a controller waits for ever";
  expect(works()).toBe(false);
  expect(log.lines.at(-1)).toMatchObject({ level: "error", text: expect.stringContaining(why) });
  signal("SIGTERM");
  expect(await running).toBe(0);
});
