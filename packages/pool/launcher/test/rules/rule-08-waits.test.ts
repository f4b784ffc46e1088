import type { Provider } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { withMethods } from "./with-methods.ts";
import { fakeProvider, launcherConfig, staticProvider, World } from "./world.ts";

const DAY = 86_400_000;

/** A driver of which one method never answers and does not listen to its signal either. */
const deaf = (method: keyof Provider) => withMethods(() => ({ [method]: () => new Promise(() => {}) }));

describe("rule 8: no wait without a deadline", () => {
  test("a probe that never answers is the answer no", async () => {
    const world = new World();
    const host = { name: "127.0.0.1", labels: ["small"], "host-key-checking": false };
    const { log } = await world.start("a", launcherConfig([staticProvider([host])]), { wrap: deaf("probe") });
    await world.until(
      "it is reported",
      () => log.lines.find(({ text }) => text === "a host is not registered"),
      200_000,
    );
  });

  test("a launch that never gets anywhere ends at launch-timeout", async () => {
    const world = new World();
    const never = withMethods(() => ({
      async *create() {
        yield { step: "for ever", deadlineMs: Number.POSITIVE_INFINITY };
        return await new Promise<never>(() => {});
      },
    }));
    const config = fakeProvider("cloud", { "launch-timeout": 60, "launch-retries": 1 });
    await world.start("a", launcherConfig([config]), { wrap: never });
    const id = await world.ask();
    await world.until("it failed", () => world.request(id)?.state === "failed", 120_000);
  });
});

describe("rule 8: ages use tree time", () => {
  const labels = new Map([["small", { name: "small", minReady: 1, maxReadyAgeMs: 3_600_000 }]]);
  const idle = (world: World) =>
    world.nodes().find((node) => node.state === "ready" && node.allocated_to === null)?.id;

  test("a jump of more than 30 s suspends deletion by age until three sweeps agree", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()], { labels }));
    await world.until("an idle node", () => idle(world));
    const held = await world.ask();
    const { nodes } = await world.fulfilled(held);
    const [node] = nodes as string[];
    await world.put(paths.node(node!), { ...world.node(node!), state: "hold", hold_expiration: 7_200 });
    const young = await world.until("another", () => idle(world));
    world.clock.jump(DAY);
    await world.run(100_000);
    expect(idle(world)).toBe(young);
    expect(world.node(node!)?.state).toBe("hold");
    await world.run(300_000);
    expect(world.node(young)).toBeUndefined();
    expect(world.node(node!)).toBeUndefined();
  });

  test("a jump that is taken back was none", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()], { labels }));
    const id = await world.until("an idle node", () => idle(world));
    world.clock.jump(DAY);
    await world.run(90_000);
    world.clock.jump(-DAY);
    await world.run(600_000);
    expect(idle(world)).toBe(id);
  });
});

test("rule 8: lock parents of old requests go, oldest first, a bounded number of reads at a time", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const live = await world.ask();
  await world.fulfilled(live);
  for (let at = 0; at < 5; at++) await world.folder(paths.requestLock(`100-000000010${at}`));
  await world.run(27_000_000);
  const young = "200-0000000200";
  await world.folder(paths.requestLock(young));
  await world.run(1_700_000);
  expect(world.children(paths.requestsLock)).toHaveLength(7);
  await world.run(400_000);
  expect(world.children(paths.requestsLock)).toEqual([live, young]);
});
