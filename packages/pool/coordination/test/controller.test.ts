import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { Live, memoryLog, RESTS } from "@nodeyard/telemetry";
import { beforeEach, expect, test } from "vitest";
import { Controller, type ControllerSpec, KeyedController } from "../src/index.ts";

let clock: VirtualClock;
let handles: ConstructorParameters<typeof Controller>[0] & { log: ReturnType<typeof memoryLog> };
let looks: number[];

beforeEach(() => {
  clock = new VirtualClock();
  handles = { clock, random: seededRandom(1), log: memoryLog(), live: new Live(clock) };
  looks = [];
});

function open(spec: Partial<ControllerSpec> = {}, onRest?: () => void): Controller {
  const noted: ControllerSpec = {
    name: "it",
    site: "test",
    ...spec,
    reconcile: async (signal, task) => {
      looks.push(clock.monotonic());
      return spec.reconcile?.(signal, task);
    },
  };
  return new Controller(handles, noted, onRest);
}

test("wakes that come together make one look, and those during a look one more", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const controller = open({ reconcile: () => promise.then(() => undefined) });
  controller.wake();
  controller.wake();
  await clock.advance(0);
  expect(looks).toHaveLength(1);
  controller.wake();
  controller.wake();
  await clock.advance(1_000);
  expect(looks).toHaveLength(1);
  resolve();
  await clock.advance(1_000);
  expect(looks).toHaveLength(2);
});

test("the earliest of what was asked for counts", async () => {
  const controller = open();
  controller.wake(500);
  controller.wake(100);
  controller.wake(300);
  await clock.advance(10_000);
  expect(looks).toEqual([100]);
});

test("it looks again when the look says, and at each resync", async () => {
  const again = [10, undefined, undefined];
  const controller = open({ resyncMs: 1_000, reconcile: async () => again.shift() });
  controller.wake();
  await clock.advance(3_000);
  expect(looks.slice(0, 2)).toEqual([0, 10]);
  expect(looks.length).toBeGreaterThanOrEqual(4);
  for (const [index, at] of looks.slice(2).entries()) {
    expect(at - looks[index + 1]!).toBeGreaterThanOrEqual(750);
    expect(at - looks[index + 1]!).toBeLessThanOrEqual(1_250);
  }
});

test("a look that asks for itself at once lets time move on", async () => {
  open({ reconcile: async () => 0 }).wake();
  await clock.advance(10);
  expect(looks.length).toBeLessThanOrEqual(11);
});

test("a call of look() resolves when a run has ended that began after the call", async () => {
  let [ends, ended] = [() => {}, 0];
  const controller = open({
    reconcile: () => new Promise((resolve) => (ends = () => resolve(undefined))),
  });
  const said = () => void ended++;
  void controller.look().then(said);
  await clock.advance(0);
  void controller.look().then(said);
  for (const count of [1, 2]) {
    expect(looks).toHaveLength(count);
    ends();
    await clock.advance(0);
    expect(ended).toBe(count);
  }
  await controller.close();
  await controller.look();
  expect(looks).toHaveLength(2);
});

test("a failed run is reported and repeated with growing pauses", async () => {
  let fails = true;
  const controller = open({
    reconcile: async () => {
      if (fails) throw new Error("no");
      return undefined;
    },
  });
  controller.wake();
  await clock.advance(5_000);
  const [first, second, third] = looks;
  expect(third! - second!).toBeGreaterThan((second! - first!) * 0.9);
  expect(handles.log.lines[0]).toMatchObject({ text: "a controller failed; it will look again" });
  fails = false;
  await clock.advance(60_000);
  const tried = looks.length;
  await clock.advance(600_000);
  expect(looks).toHaveLength(tried);
});

test("closing aborts the look under way, waits for it, and nothing is looked at after it", async () => {
  let aborted = false;
  const controller = open({
    resyncMs: 100,
    reconcile: (signal) =>
      new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          aborted = true;
          resolve(undefined);
        }),
      ),
  });
  controller.wake();
  await clock.advance(0);
  await controller.close();
  expect(aborted).toBe(true);
  controller.wake();
  await clock.advance(10_000);
  expect(looks).toHaveLength(1);
  expect(handles.live.list()).toEqual([]);
});

test("the stack dump lists it from its start to its end, with its next look", async () => {
  const controller = open({ resyncMs: 1_000, reconcile: async () => 50 });
  expect(handles.live.list()).toMatchObject([{ kind: "controller", name: "it", step: RESTS }]);
  controller.wake();
  await clock.advance(0);
  expect(handles.live.list()).toMatchObject([{ step: RESTS, until: 50 }]);
  await controller.close();
});

test("keyed controllers come with their wake and go when they rest", async () => {
  const seen: string[] = [];
  let again: number | undefined = 100;
  const keyed = new KeyedController(handles, (key) => ({
    name: `of ${key}`,
    site: "test",
    reconcile: async () => {
      seen.push(key);
      return again;
    },
  }));
  keyed.wake("a");
  keyed.wake("b");
  await clock.advance(50);
  expect(seen).toEqual(["a", "b"]);
  expect(handles.live.list().map(({ name }) => name)).toEqual(["of a", "of b"]);
  again = undefined;
  await clock.advance(100);
  expect(seen).toHaveLength(4);
  expect(handles.live.list()).toEqual([]);
  keyed.wake("a");
  await clock.advance(0);
  expect(seen).toHaveLength(5);
  await keyed.close();
  keyed.wake("a");
  await clock.advance(100);
  expect(seen).toHaveLength(5);
});

test("one that looks as it should is never stuck; one whose look does not end, or whose timer is lost, is", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let hangs = false;
  open({
    resyncMs: 60_000,
    reconcile: async (_, task) => {
      task.at("reads the tree", 60_000);
      if (hangs) await promise;
      return undefined;
    },
  }).start();
  for (let minute = 0; minute < 120; minute++) {
    await clock.advance(60_000);
    expect(handles.live.stuck()).toBeUndefined();
  }
  hangs = true;
  await clock.advance(600_000);
  expect(handles.live.stuck()).toMatch(
    /^the controller "it" should have given up \d+ s ago \(reads the tree\)$/,
  );
  resolve();
  await clock.advance(0);
  expect(handles.live.stuck()).toBeUndefined();
  // A timer that never fires.
  handles = { ...handles, clock: { ...systemTimes(clock), setTimer: () => ({ cancel: () => {} }) } as never };
  open({ resyncMs: 60_000 }).start();
  await clock.advance(600_000);
  expect(handles.live.stuck()).toMatch(/^the controller "it" should have looked again \d+ s ago$/);
});

const systemTimes = (from: VirtualClock) => ({ now: () => from.now(), monotonic: () => from.monotonic() });
