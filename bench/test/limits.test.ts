import { describe, expect, it } from "vitest";
import type { Figure } from "../lib/scenario.ts";
import { judge, LIMITS } from "../limits.ts";

const ratio = { name: "ratio", of: { scenario: "a", requests: 10 }, field: "ratio", least: 0.4 };

describe("judge", () => {
  it("judges the last figure with these fields", () => {
    const figures = [
      { scenario: "a", requests: 10, ratio: 0.1 },
      { scenario: "a", requests: 10, ratio: 0.4 },
      { scenario: "a", requests: 20, ratio: 0.2 },
    ];
    expect(judge(figures, [ratio])).toEqual([
      { limit: "ratio", value: 0.4, allowed: "at least 0.4", ok: true },
    ]);
    expect(judge(figures.slice(0, 1), [ratio])[0]?.ok).toBe(false);
  });

  it("compares with another figure, and gives no verdict without it", () => {
    const limit = {
      name: "growth",
      of: { scenario: "a", requests: 20 },
      field: "cpu",
      against: { scenario: "a", requests: 10 },
      most: 1.3,
    };
    const figures = [
      { scenario: "a", requests: 10, cpu: 1 },
      { scenario: "a", requests: 20, cpu: 1.4 },
    ];
    expect(judge(figures, [limit])).toEqual([
      { limit: "growth", value: 1.4, allowed: "at most 1.3", ok: false },
    ]);
    expect(judge(figures.slice(1), [limit])).toEqual([]);
  });

  it("counts a figure without its field as missed", () => {
    const figures: Figure[] = [{ scenario: "a", requests: 10 }];
    expect(judge(figures, [ratio])[0]?.ok).toBe(false);
  });

  it("has a bound in every limit, and a name for each", () => {
    for (const { most, least } of LIMITS) expect((most === undefined) !== (least === undefined)).toBe(true);
    expect(new Set(LIMITS.map(({ name }) => name)).size).toBe(LIMITS.length);
  });
});
