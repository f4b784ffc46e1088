import { VirtualClock } from "@nodeyard/runtime";
import { Counters } from "@nodeyard/telemetry";
import { describe, expect, test } from "vitest";
import { StatsdReporter, type StatsdSample } from "../src/index.ts";

const gauge = (key: string, value: number): StatsdSample => ({ key, type: "g", value });

function lab() {
  const clock = new VirtualClock();
  const counters = new Counters();
  const sent: string[] = [];
  const world = { leading: true, shared: [gauge("nodepool.nodes.ready", 0)], own: [] as StatsdSample[] };
  const reporter = new StatsdReporter({
    clock,
    counters,
    sink: { send: (lines) => void sent.push(...lines) },
    own: () => world.own,
    shared: { leading: () => world.leading, gauges: () => world.shared },
  });
  return { clock, counters, world, reporter, take: () => sent.splice(0) };
}

describe("reports to statsd", () => {
  test("a burst of changes is one report, a second later, of what changed", async () => {
    const { clock, world, reporter, take } = lab();
    await clock.advance(1_000);
    expect(take()).toEqual(["nodepool.nodes.ready:0|g"]);
    world.shared = [gauge("nodepool.nodes.ready", 1), gauge("nodepool.nodes.used", 0)];
    for (let change = 0; change < 100; change++) reporter.changed();
    expect(take()).toEqual([]);
    await clock.advance(1_000);
    expect(take()).toEqual(["nodepool.nodes.ready:1|g", "nodepool.nodes.used:0|g"]);
    world.shared = [gauge("nodepool.nodes.ready", 2), gauge("nodepool.nodes.used", 0)];
    reporter.changed();
    await clock.advance(1_000);
    expect(take()).toEqual(["nodepool.nodes.ready:2|g"]);
  });

  test("figures of an idle system are sent again and again", async () => {
    const { clock, take } = lab();
    await clock.advance(1_000);
    take();
    await clock.advance(60_000);
    expect(take()).toEqual(Array(6).fill("nodepool.nodes.ready:0|g"));
  });

  test("what has vanished is set to zero, once; a limit that has been lifted is not", async () => {
    const { clock, world, reporter, take } = lab();
    world.shared = [
      gauge("nodepool.provider.gone.nodes.ready", 4),
      gauge("nodepool.tenant_limits.a.cores", 8),
    ];
    await clock.advance(1_000);
    expect(take()).toHaveLength(2);
    world.shared = [];
    reporter.changed();
    await clock.advance(30_000);
    expect(take()).toEqual(["nodepool.provider.gone.nodes.ready:0|g"]);
  });

  test("only the leader sends the common figures; a new leader sends all of them", async () => {
    const { clock, world, reporter, take } = lab();
    world.leading = false;
    world.own = [gauge("nodepool.launcher.host.zk.client.connection_queue", 1)];
    await clock.advance(1_000);
    expect(take()).toEqual(["nodepool.launcher.host.zk.client.connection_queue:1|g"]);
    world.leading = true;
    reporter.changed();
    await clock.advance(1_000);
    expect(take()).toEqual(["nodepool.nodes.ready:0|g"]);
    world.leading = false;
    await clock.advance(20_000);
    take();
    world.leading = true;
    reporter.changed();
    await clock.advance(1_000);
    expect(take()).toContain("nodepool.nodes.ready:0|g");
  });

  test("counts go at once; after the end nothing does", async () => {
    const { clock, counters, reporter, take } = lab();
    await clock.advance(1_000);
    take();
    counters.add("launcher.leaked", 1, { provider: "p", type: "instance" });
    expect(take()).toEqual(["nodepool.provider.p.leaked.instances:1|c"]);
    reporter.changed();
    reporter.close();
    counters.add("launcher.leaked", 1, { provider: "p", type: "instance" });
    await clock.advance(60_000);
    expect(take()).toEqual([]);
  });
});
