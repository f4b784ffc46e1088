import { describe, expect, test } from "vitest";
import { Counters, durationNames, type Sample } from "../src/index.ts";

const LAUNCH = { provider: "cloud", az: "", result: "ready", requestor: "zuul", step: "" };

describe("figures of a process", () => {
  test("labels in another order are the same figure", () => {
    const counters = new Counters();
    counters.add("launcher.launches", 1, { provider: "cloud", result: "ready" });
    counters.add("launcher.launches", 2, { result: "ready", provider: "cloud" });
    expect(counters.list()).toEqual([
      { name: "launcher.launches", labels: { provider: "cloud", result: "ready" }, value: 3 },
    ]);
  });

  test("times are gathered in buckets; details are passed on, and not kept apart", () => {
    const counters = new Counters();
    const heard: Sample[] = [];
    const stop = counters.onSample((sample) => void heard.push(sample));
    counters.time("launcher.launch", 4_000, LAUNCH);
    counters.time("launcher.launch", 45_000, { ...LAUNCH, requestor: "other" });
    stop();
    counters.time("launcher.launch", 10_000_000, LAUNCH);
    const [histogram, ...more] = counters.times();
    expect(more).toEqual([]);
    expect(histogram).toMatchObject({ labels: { provider: "cloud", az: "", result: "ready" }, count: 3 });
    expect(histogram!.sumSeconds).toBeCloseTo(10_049);
    const { buckets } = durationNames["launcher.launch"];
    const within = (seconds: number) => histogram!.atMost[buckets.indexOf(seconds as never)];
    expect([within(2.5), within(5), within(40), within(50), within(1_800)]).toEqual([0, 1, 1, 2, 2]);
    expect(heard.map(({ labels }) => labels.requestor)).toEqual(["zuul", "other"]);
  });

  test("a level is what it was set to last", () => {
    const counters = new Counters();
    counters.level("builder.exit_code", 1, { image: "noble" });
    counters.level("builder.exit_code", 0, { image: "noble" });
    expect(counters.levels()).toEqual([{ name: "builder.exit_code", labels: { image: "noble" }, value: 0 }]);
  });

  test("buckets grow, and every name has its help", () => {
    for (const [name, { buckets, help }] of Object.entries(durationNames)) {
      expect(
        [...buckets].sort((a, b) => a - b),
        name,
      ).toEqual([...buckets]);
      expect(help, name).not.toBe("");
    }
  });
});
