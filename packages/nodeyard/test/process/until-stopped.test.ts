import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { type Machine, STOP_MS, untilStopped } from "../../src/process/index.ts";
import { memoryLog } from "../../src/telemetry/index.ts";

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
  let before = 0;
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
    exit(code): never {
      exits.push(code);
      throw new Exited(code);
    },
  };
  const signal = (name: "SIGINT" | "SIGTERM") => send?.(name, before++);
  return { of, clock, signal, exits, listens: () => send !== undefined };
}

test("runs until a signal, then stops in good order and listens no more", async () => {
  const { of, signal, exits, listens } = machine();
  let stopped = false;
  const running = untilStopped(of, memoryLog(), async () => {
    stopped = true;
  });
  expect(stopped).toBe(false);
  signal("SIGTERM");
  expect(await running).toBe(0);
  expect([stopped, exits, listens()]).toEqual([true, [], false]);
});

test("a second signal ends it at once", async () => {
  const { of, signal, exits } = machine();
  void untilStopped(of, memoryLog(), () => new Promise(() => {}));
  signal("SIGINT");
  expect(exits).toEqual([]);
  expect(() => signal("SIGINT")).toThrow(Exited);
  expect(exits).toEqual([1]);
});

test("a stop that hangs is ended by force", async () => {
  const { of, clock, signal, exits } = machine();
  const log = memoryLog();
  void untilStopped(of, log, () => new Promise(() => {}));
  signal("SIGTERM");
  await clock.advance(STOP_MS - 1);
  expect(exits).toEqual([]);
  await expect(clock.advance(1)).rejects.toThrow(Exited);
  expect(exits).toEqual([1]);
  expect(log.lines.at(-1)).toMatchObject({ level: "error", text: "the stop takes too long; ending at once" });
});

test("a stop that fails says so", async () => {
  const { of, signal, listens } = machine();
  const running = untilStopped(of, memoryLog(), () => Promise.reject(new Error("the disk is full")));
  signal("SIGTERM");
  await expect(running).rejects.toThrow("the disk is full");
  expect(listens()).toBe(false);
});
