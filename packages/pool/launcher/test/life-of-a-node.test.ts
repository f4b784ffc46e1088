import type { Step } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { Live, memoryJournal } from "@nodeyard/telemetry";
import { describe, expect, test } from "vitest";
import type { StepUnderWay } from "../src/nodes/handles.ts";
import { StepTrace } from "../src/nodes/step-trace.ts";
import { fakeProvider, launcherConfig, type Member, World } from "./rules/world.ts";

const reported = ({ journal }: Pick<Member, "journal">, node: string) =>
  journal.events.filter((event) => event.node === node);

describe("the life of a node in the journal", () => {
  test("is its record, each step with begin and duration, that it is ready, its return and its end", async () => {
    const world = new World({
      latency: {
        create: { minMs: 300, maxMs: 300 },
        boot: { minMs: 2_000, maxMs: 2_000 },
        delete: { minMs: 400, maxMs: 400 },
        read: { minMs: 10, maxMs: 10 },
      },
    });
    const member = await world.start("a", launcherConfig([fakeProvider()]));
    const id = await world.ask();
    const { nodes } = await world.fulfilled(id);
    const [node] = nodes as [string];
    await world.use(id);
    await world.until("it is gone", () =>
      reported(member, node).some(({ event }) => event === "node.deleted"),
    );
    // Its user writes the next state so soon that the launcher may not see it in use.
    const events = reported(member, node).filter(({ event }) => event !== "node.in-use");
    expect(events.map(({ event, facts }) => `${event} ${facts.step ?? ""}`.trim())).toEqual([
      "node.created",
      "node.launching",
      "node.step find",
      "node.step server",
      "node.machine",
      "node.step wait",
      "node.ready",
      "node.returned",
      "node.deleting",
      "node.step find",
      "node.step delete",
      "node.deleted",
    ]);
    expect(events[0]?.facts).toMatchObject({ request: id, provider: "cloud", pool: "main", label: "small" });
    const [server, wait, removal] = [events[3]!.facts, events[5]!.facts, events[10]!.facts];
    expect(server).toMatchObject({ of: "launch", attempt: 1, ms: 300 });
    expect(wait.ms).toBeGreaterThanOrEqual(2_000);
    expect(Number(wait.began)).toBeGreaterThanOrEqual(Number(server.began) + 300);
    expect(removal).toMatchObject({ of: "delete", attempt: 1, ms: 410 });
    expect(events[6]?.facts).toMatchObject({ provider: "cloud", attempt: 1 });
  });

  test("tells in which step a try failed, and of which try each step is", async () => {
    const world = new World();
    world.cloud.faults.createFails = 1;
    const member = await world.start("a", launcherConfig([fakeProvider("cloud", { "launch-retries": 2 })]));
    const { nodes } = await world.fulfilled(await world.ask());
    const steps = reported(member, (nodes as string[])[0]!).filter(({ event }) => event === "node.step");
    const failed = steps.filter(({ facts }) => facts.error !== undefined);
    expect(failed).toHaveLength(1);
    expect(failed[0]?.facts).toMatchObject({ step: "server", attempt: 1, of: "launch" });
    expect(steps.filter(({ facts }) => facts.of === "clean-up").length).toBeGreaterThan(0);
    expect(steps.at(-1)?.facts).toMatchObject({ step: "wait", attempt: 2 });
  });

  test("explain of the request says why a pool declined after a failed launch", async () => {
    const world = new World();
    world.cloud.faults.createFails = 1;
    const config = launcherConfig([fakeProvider("cloud", { "launch-retries": 1 })]);
    const { journal } = await world.start("a", config);
    const id = await world.ask();
    await world.until("it failed", () => world.request(id)?.state === "failed");
    const declines = () => journal.events.filter(({ event }) => event === "request.declined");
    const declined = await world.until("it is told", () => declines().length > 0 && declines());
    expect(declined).toMatchObject([{ request: id, facts: { state: "failed" } }]);
    expect(declined[0]?.facts.reason).toContain("create fails");
    await world.settle(world.other.delete(paths.request(id)));
  });

  test("is bounded, however often a driver yields: one step that goes on is one, and so many are all", () => {
    const world = new World();
    const journal = memoryJournal();
    const stepsUnderWay = new Map<string, StepUnderWay>();
    const live = new Live(world.clock);
    const trace = new StepTrace(
      { clock: world.clock, tree: world.other, journal, live, stepsUnderWay },
      {
        node: "0000000001",
        of: "launch",
        attempt: 1,
      },
    );
    const step = (name: string): Step => ({ step: name, deadlineMs: 1 });
    for (let count = 0; count < 1_000; count++) trace.begin(step("wait").step);
    for (let count = 0; count < 1_000; count++) trace.begin(step(`step ${count}`).step);
    expect([...stepsUnderWay.values()]).toMatchObject([
      { node: "0000000001", of: "launch", step: "step 999" },
    ]);
    trace.end("it broke");
    expect(stepsUnderWay.size).toBe(0);
    expect(journal.events.length).toBeLessThanOrEqual(65);
    expect(journal.events[0]?.facts.step).toBe("wait");
    expect(journal.events.at(-1)?.facts).toMatchObject({
      step: "step 999",
      error: "it broke",
      unreported: 936,
    });
  });
});
