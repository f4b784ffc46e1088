import { VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import {
  DriverError,
  type Metadata,
  machineMetadata,
  NodeMachines,
  SharedValues,
  type Tag,
} from "../src/index.ts";

interface Machine {
  readonly id: string;
  readonly metadata: Metadata;
  readonly ended?: boolean;
}

const { signal } = new AbortController();
const tag = (nodeId: string): Tag => ({ installation: "i", provider: "cloud", pool: "main", nodeId });
const ONE = tag("0000000001");

/** A cloud whose listing shows what `listed` has, and that reads what `all` has. */
function cloud() {
  const clock = new VirtualClock();
  const [all, listed] = [new Map<string, Machine>(), new Map<string, Machine>()];
  const calls: string[] = [];
  const deleted = new Set<string>();
  const closed = new AbortController();
  const machines = new NodeMachines<Machine>({
    clock,
    watch: {
      all: async (_, now) => {
        calls.push(now ? "list now" : "list");
        return listed;
      },
      whole: async () => listed,
      wait: () => new Promise(() => {}),
    },
    what: "machine",
    idOf: ({ id }) => id,
    idIn: (id) => (typeof id === "string" ? id : undefined),
    isUp: ({ ended }) => ended !== true,
    hasFailed: ({ ended }) => ended === true,
    failure: () => new DriverError("transient", "it ended"),
    isLeaving: ({ ended }) => ended === true,
    isDeleted: (id) => deleted.has(id),
    delete: async (id) => void deleted.add(id),
    metadataOf: ({ metadata }) => metadata,
    hasEnded: ({ ended }) => ended === true,
    read: async (id) => {
      calls.push(`read ${id}`);
      return all.get(id);
    },
    createMs: 60_000,
    closed: closed.signal,
  });
  const make = (id: string, of = ONE, more: Partial<Machine> = {}) => {
    const machine = { id, metadata: machineMetadata(of), ...more };
    all.set(id, machine);
    return machine;
  };
  const asked = () => calls.splice(0);
  return { clock, all, listed, machines, make, asked, closed };
}

describe("the machine of a node", () => {
  test("of a new tag needs one recent list; after a call of ours a fresh one, and a read of what lists do not show yet", async () => {
    const { machines, make, asked } = cloud();
    expect(await machines.existing(ONE, null, signal)).toBeUndefined();
    expect(asked()).toEqual(["list"]);
    expect(await machines.create(ONE, async () => make("a").id, signal)).toBe("a");
    expect(await machines.existing(ONE, null, signal)).toMatchObject({ id: "a" });
    expect(asked()).toEqual(["list", "list now", "read a"]);
    await machines.delete("a", signal);
    expect(await machines.existing(ONE, null, signal)).toBeUndefined();
    expect(asked()).toEqual(["list", "list now"]);
    machines.forget(ONE);
    expect(await machines.existing(ONE, null, signal)).toBeUndefined();
    expect(asked()).toEqual(["list"]);
  });

  test("is the one with its tag, whatever the stored id says; one that runs comes before one that has ended", async () => {
    const { listed, machines, make } = cloud();
    listed.set("theirs", make("theirs", tag("0000000002")));
    expect(await machines.existing(ONE, "theirs", signal)).toBeUndefined();
    listed.set("old", make("old", ONE, { ended: true }));
    expect(await machines.find(ONE, null, signal)).toMatchObject({ id: "old" });
    listed.set("new", make("new"));
    expect(await machines.find(ONE, null, signal)).toMatchObject({ id: "new" });
    expect(await machines.existing(ONE, "old", signal)).toMatchObject({ id: "old" });
  });

  test("is made though the caller gave up: the next search waits for it, and no longer than the limit", async () => {
    const { clock, machines, make } = cloud();
    const [answer, gaveUp] = [Promise.withResolvers<string>(), new AbortController()];
    const creating = machines.create(ONE, () => answer.promise, gaveUp.signal);
    gaveUp.abort(new Error("gave up"));
    await expect(creating).rejects.toThrow("gave up");
    const found = machines.existing(ONE, null, signal);
    make("a");
    answer.resolve("a");
    expect(await found).toMatchObject({ id: "a" });

    let limit: AbortSignal | undefined;
    const never = machines.create(
      ONE,
      (until) => {
        limit = until;
        return new Promise((_, reject) => until.addEventListener("abort", () => reject(until.reason)));
      },
      signal,
    );
    const refused = expect(never).rejects.toMatchObject({ kind: "transient" });
    await clock.advance(60_001);
    await refused;
    expect(limit?.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

test("values by key are loaded once each, until they are too old or closed", async () => {
  const clock = new VirtualClock();
  const values = new SharedValues<string>(clock);
  const loads: string[] = [];
  const get = (key: string) => {
    const load = async () => `${key}${loads.push(key)}`;
    return values.get(key, { load, freshMs: 1_000, staleMs: 1_000 }, signal);
  };
  expect(await Promise.all([get("a"), get("a"), get("b")])).toEqual(["a1", "a1", "b2"]);
  await clock.advance(1_001);
  expect(await get("a")).toBe("a3");
  values.invalidate();
  expect(await get("b")).toBe("b4");
  values.close();
  await expect(get("b")).rejects.toThrow("the b is closed");
});
