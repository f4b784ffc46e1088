import { DriverError } from "@nodeyard/driver";
import { isSuspended, type NodeFields } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const BOOT = { minMs: 60_000, maxMs: 60_000 };
const NONE = { minMs: 0, maxMs: 0 };
const spares = (min: number) => ({
  ...{ min, max: Number.POSITIVE_INFINITY, share: 0, times: [], target: null },
  ...{ idleMs: 600_000, suspended: true },
});

/** A launcher that keeps `min` suspended spares in a cloud whose machines take a minute to boot, and six seconds to wake. */
async function started(min: number, options: Parameters<World["start"]>[2] = {}, servers = 5) {
  const world = new World({
    latency: { create: { minMs: 1_000, maxMs: 1_000 }, delete: NONE, read: NONE, boot: BOOT },
  });
  const label = { name: "small", minReady: 0, maxReadyAgeMs: Number.POSITIVE_INFINITY, spares: spares(min) };
  const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": servers })], {
    labels: new Map([["small", label]]),
  });
  const member = await world.start("a", config, options);
  const suspended = () =>
    world.nodes().filter((node) => isSuspended({ state: node.state, holdJob: node.hold_job } as NodeFields));
  const machineOf = (node: string) => world.cloud.inspect().find(({ tag }) => tag?.nodeId === node);
  return { world, member, config, suspended, machineOf };
}

describe("a spare that is suspended", () => {
  test("is woken for a request in a tenth of a launch, with its host keys; another one takes its place", async () => {
    const { world, member, suspended, machineOf } = await started(2);
    await world.until("both are suspended", () => suspended().length === 2, 300_000);
    const keys = new Map(suspended().map(({ id, host_keys }) => [id, host_keys]));
    for (const { id } of suspended()) expect(world.cloud.status(machineOf(id)!)).toBe("SUSPENDED");
    // Neither Zuul nor a Python launcher gives a node on hold to anybody, and it counts for nobody.
    expect(suspended()[0]).toMatchObject({ state: "hold", allocated_to: null, comment: expect.any(String) });
    const story = await world.explain("node", suspended()[0]!.id);
    expect(story.waits_for).toMatchObject({ code: "node.suspended" });
    expect(member.journal.events.filter(({ event }) => event === "node.held")).toEqual([]);
    const asked = world.clock.monotonic();
    const { nodes } = await world.fulfilled(await world.ask());
    expect(world.clock.monotonic() - asked).toBeLessThan(10_000);
    const [id = ""] = nodes as string[];
    expect(keys.get(id)).toEqual(world.node(id)?.host_keys);
    expect(world.node(id)).toMatchObject({ state: "ready", hold_job: null, comment: null });
    expect(world.cloud.status(machineOf(id)!)).toBe("ACTIVE");
    const woken = member.journal.events.find(({ event, node }) => event === "node.woken" && node === id);
    expect(woken?.facts).toMatchObject({ ms: expect.any(Number) });
    await world.until("it is replaced", () => suspended().length === 2, 300_000);
    expect(world.nodes()).toHaveLength(3);
  });

  test("that does not wake is deleted, and the request is served all the same", async () => {
    const { world, suspended, machineOf } = await started(1);
    const [spare] = await world.until("it is suspended", () => suspended()[0] && suspended(), 300_000);
    await world.settle(world.cloud.delete(machineOf(spare!.id)!.id, new AbortController().signal));
    const { nodes } = await world.fulfilled(await world.ask(), 300_000);
    expect(nodes).not.toContain(spare!.id);
    await world.until("it is gone", () => world.node(spare!.id) === undefined);
  });

  test("gives way where another request needs its room", async () => {
    const { world, suspended } = await started(2, {}, 2);
    await world.until("they are suspended", () => suspended().length === 2, 300_000);
    await world.fulfilled(await world.ask({ node_types: ["large"] }), 300_000);
  });

  for (const [when, request] of [
    ["is being suspended", false],
    ["is being woken", true],
  ] as const)
    test(`goes with its machine where the session of the launcher ends while it ${when}`, async () => {
      const { world, member, suspended, machineOf } = await started(1);
      if (request) {
        await world.until("it is suspended", () => suspended().length === 1, 300_000);
        await world.ask();
      }
      const isUnderWay = ({ id, state, allocated_to }: { readonly id: string } & Record<string, unknown>) =>
        state === "building" && (allocated_to === null) === !request && machineOf(id) !== undefined;
      const { id } = await world.until("it is under way", () => world.nodes().find(isUnderWay), 300_000);
      member.tree.expire();
      const isGone = () => world.node(id) === undefined && machineOf(id) === undefined;
      await world.until("node and machine are gone", isGone, 300_000);
      await world.until("there is a new spare", () => suspended().length === 1, 600_000);
    });

  test("and cannot be, runs: the label is left alone for an hour rather than made and deleted again and again", async () => {
    let refused = 0;
    const { world } = await started(2, {
      wrap: withMethods(({ offers }) => ({
        offers: {
          ...offers,
          suspension: {
            ...offers!.suspension!,
            async *suspend() {
              yield { step: "suspend", deadlineMs: 60_000 };
              refused++;
              throw new DriverError("unsupported", "spot instances cannot be stopped");
            },
          },
        },
      })),
    });
    const ready = () =>
      world.nodes().filter(({ state, allocated_to }) => state === "ready" && allocated_to === null);
    await world.run(1_800_000);
    expect(ready()).toHaveLength(2);
    expect(refused).toBeLessThanOrEqual(2);
  });
});
