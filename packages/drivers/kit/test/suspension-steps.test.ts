import { systemClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import {
  DriverError,
  ListWatch,
  type Metadata,
  machineMetadata,
  NoAnswer,
  NodeMachines,
  type Rest,
  type Step,
  type Tag,
} from "../src/index.ts";
import { suspensionSteps } from "../src/suspension-steps.ts";

/** Its pauses are over at once. */
const clock = { ...systemClock, setTimer: (_: number, fn: () => void) => systemClock.setTimer(0, fn) };

type State = Rest | "up" | "ended" | "deleted";
interface Machine {
  readonly id: string;
  readonly metadata: Metadata;
  readonly state: State;
}
const tag: Tag = { installation: "i", provider: "cloud", pool: "main", nodeId: "0000000001" };
const { signal } = new AbortController();
const context = { signal, externalId: "m" };
const REFUSED = new DriverError("transient", "the cloud refuses");

/** A cloud with one machine. `looks`: what its reads say, the last one for ever; `call`: what a suspension or its end does. */
function cloud({
  looks,
  call = async () => {},
  shows = true,
}: {
  looks: State[];
  call?: () => Promise<void>;
  shows?: boolean;
}) {
  const calls: string[] = [];
  const read = async (): Promise<Machine | undefined> => {
    const state = looks.length > 1 ? looks.shift()! : looks[0]!;
    return state === "deleted" ? undefined : { id: "m", metadata: machineMetadata(tag), state };
  };
  const watch = new ListWatch<Machine>({
    ...{ clock, read, what: "list", isGone: () => false, onFailure: () => {} },
    ...{ idOf: ({ id }) => id, list: async () => [(await read()) ?? []].flat() },
  });
  const machines = new NodeMachines<Machine>({
    ...{ clock, watch, read, idOf: ({ id }: Machine) => id, delete: async () => {} },
    ...{ idIn: () => "m", metadataOf: ({ metadata }: Machine) => metadata, isLeaving: () => false },
    // As of clouds that have one word for both: what rests has ended, and what is on its way there is still up.
    isUp: ({ state }) => state === "up" || state === "suspending",
    hasEnded: ({ state }) => state === "ended" || state === "suspended",
    failure: ({ state }) => new DriverError("capacity", `it is ${state}`),
    closed: signal,
  });
  const restOf = ({ state }: Machine) => (/^(up|ended)$/.test(state) ? undefined : (state as Rest));
  const noted = (name: string) => async () => {
    calls.push(name);
    await call();
  };
  const work = { machines, describe: () => ({}), make: () => Promise.reject(new Error("it makes none")) };
  const steps = suspensionSteps({ name: "cloud", launchTimeoutMs: 1_000 }, work as never, {
    ...{ suspend: noted("suspend"), resume: noted("resume"), ...(shows && { restOf }) },
  });
  const run = async (generator: AsyncGenerator<Step, unknown, void>) => {
    const names: string[] = [];
    for await (const { step } of generator) names.push(step);
    return names;
  };
  return {
    calls,
    suspend: () => run(steps.suspend(tag, context)),
    wake: () => run(steps.wake({ tag } as never, context)),
  };
}

describe("a machine is suspended and woken", () => {
  test("by one call each, and what it goes through meanwhile is waited for", async () => {
    const down = cloud({ looks: ["up", "up", "suspending", "suspended"] });
    expect(await down.suspend()).toEqual(["find", "suspend", "rest"]);
    const back = cloud({ looks: ["suspended", "suspended", "resuming", "up"] });
    expect(await back.wake()).toEqual(["find", "wake", "wait"]);
    expect([...down.calls, ...back.calls]).toEqual(["suspend", "resume"]);
  });

  test("once: what is there already, or on its way, is not asked for again, and is not turned round", async () => {
    const [rests, goes] = [cloud({ looks: ["suspended"] }), cloud({ looks: ["up"] })];
    expect([await rests.suspend(), await goes.wake()]).toEqual([["find"], ["find", "wait"]]);
    const halfway = cloud({ looks: ["suspending", "suspending", "suspended"] });
    expect(await halfway.suspend()).toEqual(["find", "settle"]);
    const turned = cloud({ looks: ["suspending", "suspended", "resuming", "up"] });
    expect(await turned.wake()).toEqual(["find", "settle", "wake", "wait"]);
    expect([rests, goes, halfway, turned].map(({ calls }) => calls)).toEqual([[], [], [], ["resume"]]);
  });

  test("though the answer was lost or a repetition refused, if the machine heard of it; else the refusal counts", async () => {
    const call = () => Promise.reject(REFUSED);
    await cloud({ looks: ["up", "suspending", "suspended"], call }).suspend();
    await cloud({ looks: ["suspended", "resuming", "up"], call }).wake();
    await expect(cloud({ looks: ["up"], call }).suspend()).rejects.toBe(REFUSED);
    await expect(cloud({ looks: ["suspended"], call }).wake()).rejects.toBe(REFUSED);
    await expect(cloud({ looks: ["suspended", "deleted"], call }).wake()).rejects.toBe(REFUSED);
  });

  test("where lists do not show it, by calls that may be repeated and end when it is so; their errors count", async () => {
    const blind = { looks: ["up"] as State[], shows: false };
    const one = cloud(blind);
    expect([await one.suspend(), await one.wake()]).toEqual([
      ["find", "suspend"],
      ["find", "wake", "wait"],
    ]);
    expect(one.calls).toEqual(["suspend", "resume"]);
    const refuses = cloud({ ...blind, call: () => Promise.reject(REFUSED) });
    await expect(refuses.suspend()).rejects.toBe(REFUSED);
    await expect(refuses.wake()).rejects.toBe(REFUSED);
    let tries = 0;
    const loses = cloud({
      ...blind,
      call: () => (tries++ === 0 ? Promise.reject(new NoAnswer("lost")) : Promise.resolve()),
    });
    await loses.suspend();
    expect(loses.calls).toEqual(["suspend", "suspend"]);
  });

  test("or it is gone, or the cloud says why it ended", async () => {
    const gone = { kind: "not-found" };
    await expect(cloud({ looks: ["deleted"] }).wake()).rejects.toMatchObject(gone);
    await expect(cloud({ looks: ["up", "suspending", "deleted"] }).suspend()).rejects.toMatchObject(gone);
    await expect(cloud({ looks: ["suspended", "resuming", "deleted"] }).wake()).rejects.toMatchObject(gone);
    const ended = { kind: "capacity", message: "it is ended" };
    await expect(cloud({ looks: ["up", "suspending", "ended"] }).suspend()).rejects.toMatchObject(ended);
    await expect(cloud({ looks: ["suspended", "ended"] }).wake()).rejects.toMatchObject(ended);
  });
});
