import { seededRandom } from "@nodeyard/runtime";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  defaultRule,
  isHopeless,
  noFailures,
  onFailure,
  opensAt,
  type Tally,
} from "../../src/launcher/breakers/rule.ts";
import { type Breaker, decodeBreaker, encodeBreaker } from "../../src/operations/index.ts";

const offering = { provider: "cloud", az: null, type: "small" };
const HOUR = 3_600_000;

/** A breaker that is driven by failures alone. */
class Driven {
  breaker: Breaker | undefined;
  tally: Tally = noFailures;
  readonly #random = seededRandom(3);

  fail(kind: Parameters<typeof onFailure>[3]["kind"], now: number, probe = false): boolean {
    const failure = { kind, error: "no", probe };
    const after = onFailure(offering, this.breaker, this.tally, failure, now, defaultRule, this.#random);
    this.tally = after.tally;
    if (after.breaker !== undefined) this.breaker = after.breaker;
    return after.breaker !== undefined;
  }
}

test("a breaker that was opened by a budget opens sooner when that is raised, and never later than it says", () => {
  const fields = { kind: "timeout", error: "no", failures: 5, opens: 1, since: 0 };
  const spent = { level: 12, at: 1_000 };
  const breaker: Breaker = { ...offering, ...fields, why: "budget", until: 1_000 + 3 * HOUR, spent };
  const at = (failedPerHour: number) => opensAt(breaker, { ...defaultRule, failedPerHour });
  expect([1, 4, 6, 12, 60].map(at)).toEqual(
    [3 * HOUR, 2.25 * HOUR, 7 * (HOUR / 6), HOUR / 12, 0].map((ms) => ms + 1_000),
  );
  expect(opensAt({ ...breaker, why: "failures" }, { ...defaultRule, failedPerHour: 60 })).toBe(breaker.until);
});

describe("when a breaker opens", () => {
  test("at once when the cloud has no room, and never for quota", () => {
    const driven = new Driven();
    expect(driven.fail("quota", 0)).toBe(false);
    expect(driven.tally).toEqual(noFailures);
    expect(driven.fail("capacity", 0)).toBe(true);
    expect(driven.breaker).toMatchObject({ why: "failures", opens: 1, failures: 1, kind: "capacity" });
  });

  test("after so many other failures in a row; what is configured wrong does not count to the row", () => {
    const driven = new Driven();
    for (let count = 1; count < defaultRule.inARow; count++)
      expect(driven.fail("timeout", count)).toBe(false);
    for (let count = 0; count < 10; count++) expect(driven.fail("configuration", 50)).toBe(false);
    expect(driven.fail("transient", 100)).toBe(true);
  });

  test("when so many failed within an hour, also of what is configured wrong", () => {
    const driven = new Driven();
    for (let count = 1; count < defaultRule.failedPerHour; count++)
      expect(driven.fail("configuration", 0)).toBe(false);
    expect(driven.fail("configuration", 0)).toBe(true);
    expect(driven.breaker).toMatchObject({ why: "budget", kind: "configuration" });
  });

  test("a crowd that fails together opens it once; the one that tries opens it for longer", () => {
    const driven = new Driven();
    driven.fail("capacity", 0);
    const first = driven.breaker!;
    for (let count = 0; count < 20; count++) expect(driven.fail("capacity", 1)).toBe(false);
    expect(driven.breaker).toBe(first);
    expect(driven.fail("timeout", first.until, true)).toBe(true);
    expect(driven.breaker).toMatchObject({ opens: 2, failures: 2, since: first.since });
  });

  test("waiting is of no use after so many openings in a row, unless the cloud has no room", () => {
    const driven = new Driven();
    for (let count = 0; count < 3; count++) driven.fail("capacity", driven.breaker?.until ?? 0, count > 0);
    expect(isHopeless(driven.breaker!, defaultRule)).toBe(false);
    driven.fail("timeout", driven.breaker!.until, true);
    expect(isHopeless(driven.breaker!, defaultRule)).toBe(true);
    driven.fail("capacity", driven.breaker!.until, true);
    expect(isHopeless(driven.breaker!, defaultRule)).toBe(false);
  });
});

test("whatever fails and whenever, a budget's worth and its refill bound what is tried in any time", () => {
  const kinds = fc.constantFrom("timeout", "transient", "capacity", "configuration", "fatal" as const);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(kinds, fc.integer({ min: 0, max: 60_000 })), { maxLength: 400 }),
      (failures) => {
        const driven = new Driven();
        let now = 0;
        let tried = 0;
        for (const [kind, pause] of failures) {
          now += pause;
          if (driven.breaker !== undefined && now < driven.breaker.until) continue;
          tried++;
          const opened = driven.fail(kind, now, driven.breaker !== undefined);
          expect(tried).toBeLessThanOrEqual(
            defaultRule.failedPerHour + 1 + (now * defaultRule.failedPerHour) / HOUR,
          );
          if (opened) expect(driven.breaker?.until).toBeGreaterThan(now);
        }
      },
    ),
  );
});

test("a record is read as it was written, and one that makes no sense is refused by its code", () => {
  const driven = new Driven();
  driven.fail("capacity", 5);
  expect(decodeBreaker("k", encodeBreaker(driven.breaker!))).toMatchObject({ ...driven.breaker });
  const code = (text: string) => {
    try {
      decodeBreaker("k", Buffer.from(text));
    } catch (error) {
      return (error as { code?: string }).code;
    }
    return undefined;
  };
  expect(code("nonsense")).toBe("breaker.not_json");
  expect(code('{"v": 2}')).toBe("breaker.version");
  expect(code(JSON.stringify({ v: 1, ...driven.breaker, until: "soon" }))).toBe("breaker.bad_field");
});
