import { Counters, memoryLog } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import { describe, expect, test } from "vitest";
import { withMethods } from "../../../pool/launcher/test/rules/with-methods.ts";
import { fakeProvider, launcherConfig, type Member, World } from "../../../pool/launcher/test/rules/world.ts";
import { stackDump } from "../src/stack-dump.ts";

function machineOf({ clock }: World): Machine {
  return {
    clock,
    memory: () => ({ resident: 1, heap: 1 }),
    eventLoop: async () => ({ utilization: 0.25, delayMs: 0 }),
  } as unknown as Machine;
}

async function dumped(world: World, { launcher, tree, counters }: Member) {
  const log = memoryLog();
  await stackDump({ machine: machineOf(world), tree, counters, log, launcher });
  expect(log.lines.map(({ level }) => level)).not.toContain("debug");
  for (const { facts } of log.lines) expect(facts).toMatchObject({ bucket: "nodeyard.stack_dump" });
  return log.lines;
}

/** A driver whose creations say one step and hang in the next, whatever is aborted. */
const hangs = withMethods(() => ({
  async *create() {
    yield { step: "boot the machine", deadlineMs: 45_000 };
    return await new Promise<never>(() => {});
  },
}));

describe("the stack dump", () => {
  test("shows a launch that hangs: its step, since when, until when, and the locks that are held for it", async () => {
    const world = new World();
    const member = await world.start("a", launcherConfig([fakeProvider()]), { wrap: hangs });
    const request = await world.ask();
    await world.until("a node is building", () => world.nodes()[0]?.state === "building");
    await world.run(20_000);
    const node = world.nodes()[0]?.id;
    const lines = await dumped(world, member);
    const machine = lines.find(({ text }) => text === `dump: machine launch ${node}, attempt 1`);
    expect(machine?.facts).toMatchObject({
      step: "boot the machine",
      site: "launcher/nodes/step-trace.ts",
    });
    const { stepMs, givenUpInMs } = machine!.facts as { stepMs: number; givenUpInMs: number };
    // The node is building a moment before its first step begins.
    expect(stepMs).toBeGreaterThan(19_900);
    expect(stepMs + givenUpInMs).toBe(45_000);
    const task = lines.find(({ text }) => text === `dump: task accept ${request}`);
    expect(task?.facts).toMatchObject({
      step: "obtains 1 nodes",
      locks: [
        expect.stringContaining(`/nodepool/requests-lock/${request}/`),
        expect.stringContaining(`/nodepool/nodes/${node}/lock/`),
      ],
    });
    expect(lines.at(-1)?.facts).toMatchObject({ utilization: 0.25 });
  });

  test("shows the tree's calls that are not answered, and nothing of them afterwards", async () => {
    const world = new World();
    const member = await world.start("a", launcherConfig([fakeProvider()]), { sessionTimeoutMs: 600_000 });
    world.fault = ({ kind }) => (kind === "write" ? { delayMs: 30_000 } : undefined);
    const request = await world.ask();
    await world.run(10_000);
    const calls = (await dumped(world, member)).filter(({ text }) => text.startsWith("dump: tree call"));
    expect(calls.map(({ text, facts }) => [text, facts])).toContainEqual([
      "dump: tree call commit",
      expect.objectContaining({ path: `/nodepool/requests-lock/${request}` }),
    ]);
    world.fault = () => undefined;
    await world.fulfilled(request, 300_000);
    await world.use(request);
    await world.until("its nodes are gone", () => world.nodes().length === 0);
    await world.run(1_000);
    const after = await dumped(world, member);
    expect(after.filter(({ text }) => /tree call|task|machine /.test(text))).toEqual([]);
  });

  test("of a process without a launcher shows its workers", async () => {
    const world = new World();
    const log = memoryLog();
    const since = world.clock.monotonic();
    const name = "upload noble-0000000001 to cloud";
    const upload = {
      kind: "worker",
      name,
      site: "s",
      since,
      step: "sends",
      stepSince: since,
      locks: [],
    } as const;
    await world.run(7_000);
    const tree = world.other;
    await stackDump({ machine: machineOf(world), tree, counters: new Counters(), log, live: () => [upload] });
    const line = log.lines.find(({ text }) => text === `dump: worker ${name}`);
    expect(line?.facts).toMatchObject({ step: "sends", ageMs: 7_000, stepMs: 7_000 });
  });
});
