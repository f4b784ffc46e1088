import { describe, expect, test } from "vitest";
import { judge, median, type Series } from "./limits.ts";

function series(client: Series["client"], samples: readonly (readonly [number, number])[]): Series {
  return {
    client,
    operation: "get",
    inFlight: 64,
    samples: samples.map(([cpuMicros, perSecond]) => ({ cpuMicros, perSecond })),
  };
}

describe("limits of the bench", () => {
  test("median", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  const pure = series("node-zookeeper-client", [
    [30, 900],
    [40, 800],
    [20, 1_000],
  ]);
  const native = series("zookeeper", [
    [10, 1_000],
    [12, 900],
    [8, 1_100],
  ]);

  test("ratios are taken within a round", () => {
    const ours = series("ours", [
      [14, 960],
      [16.8, 864],
      [11.2, 1_056],
    ]);
    const verdicts = judge([ours, pure, native]);
    // Against the native client, the faster one over all rounds.
    expect(verdicts.map(({ ratio }) => Math.round(ratio * 100) / 100)).toEqual([0.47, 1.4, 0.96]);
    expect(verdicts.every(({ pass }) => pass)).toBe(true);
  });

  test("the whole work of a level is judged at once", () => {
    const half = (
      client: Series["client"],
      operation: Series["operation"],
      micros: number,
      speed: number,
    ) => ({
      ...series(client, [[micros, speed]]),
      operation,
    });
    const verdicts = judge([
      half("ours", "get", 10, 100),
      half("ours", "set", 30, 300),
      half("zookeeper", "get", 20, 150),
      half("zookeeper", "set", 20, 150),
      half("node-zookeeper-client", "get", 40, 75),
      half("node-zookeeper-client", "set", 40, 75),
    ]);
    expect(verdicts.map(({ ratio }) => ratio)).toEqual([0.5, 1, 1]);
  });

  test("each limit can be missed", () => {
    const slow = series("ours", [
      [41, 700],
      [41, 700],
      [41, 700],
    ]);
    expect(judge([slow, pure, native]).map(({ pass }) => pass)).toEqual([false, false, false]);
    expect(() => judge([slow, pure])).toThrow(/zookeeper was not measured at 64 in flight/);
  });
});
