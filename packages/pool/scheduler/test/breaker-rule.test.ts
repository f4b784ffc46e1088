import { decodeFailures, encodeFailures, type FailureRecord, labelKey, offeringKey } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Failure,
  failureRule,
  isHopeless,
  newTally,
  onFailures,
  opensAt,
  type Tally,
} from "../src/failure-rule.ts";

const defaultRule = failureRule();
const HOUR = 3_600_000;

/** An offering that is driven by failures alone. */
class Driven {
  breaker: FailureRecord | undefined;
  tally: Tally = newTally();
  readonly #random = seededRandom(3);

  fail(kind: Failure["kind"], now: number, probe = false): boolean {
    const failures = [{ kind, error: "no", probe }];
    const { tally, breaker } = this;
    const after = onFailures("offering", tally, breaker, failures, now, defaultRule, this.#random);
    this.tally = after.tally;
    if (after.record !== undefined) this.breaker = after.record;
    return after.record !== undefined;
  }

  failed(...failure: Parameters<Driven["fail"]>): this {
    this.fail(...failure);
    return this;
  }

  get until(): number {
    return this.breaker!.pause!.until;
  }

  get hopeless(): boolean {
    const { failures: row, kind, error, pause } = this.breaker!;
    return isHopeless({ row, last: { kind, error } }, pause, defaultRule);
  }
}

test("a breaker that was opened by a budget opens sooner when that is raised, and never later than it says", () => {
  const spent = { level: 12, at: 1_000 };
  const pause = { why: "budget" as const, opens: 1, until: 1_000 + 3 * HOUR };
  const at = (failedPerHour: number) => opensAt({ spent, pause }, failureRule(failedPerHour));
  expect([1, 4, 6, 12, 60].map(at)).toEqual(
    [3 * HOUR, 2.25 * HOUR, 7 * (HOUR / 6), HOUR / 12, 0].map((ms) => ms + 1_000),
  );
  expect(opensAt({ spent, pause: { ...pause, why: "failures" } }, failureRule(60))).toBe(pause.until);
});

describe("when a breaker opens", () => {
  test("at once when the cloud has no room, and never for quota", () => {
    const driven = new Driven();
    expect(driven.fail("quota", 0)).toBe(false);
    expect(driven.tally).toEqual(newTally());
    expect(driven.fail("capacity", 0)).toBe(true);
    expect(driven.breaker).toMatchObject({
      pause: { why: "failures", opens: 1 },
      failures: 1,
      kind: "capacity",
    });
  });

  test("at once where the provider is refused, for which a request waits, and where the type never is, for which it does not", () => {
    const refused = new Driven().failed("access", 0);
    expect([refused.breaker?.pause?.opens, refused.hopeless]).toEqual([1, false]);
    for (let count = 0; count < 9; count++) refused.failed("access", refused.until, true);
    expect(refused.hopeless).toBe(false);
    const unsupported = new Driven().failed("unsupported", 0);
    expect([unsupported.breaker?.pause?.opens, unsupported.hopeless]).toEqual([1, true]);
    const one = [{ kind: "access", error: "no", probe: false }] as const;
    // The label has no part in it.
    expect(onFailures("label", newTally(), undefined, one, 0, defaultRule, seededRandom(3)).tally).toEqual(
      newTally(),
    );
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
    expect(driven.breaker).toMatchObject({ pause: { why: "budget" }, kind: "configuration" });
  });

  test("a crowd that fails together opens it once; the one that tries opens it for longer", () => {
    const driven = new Driven();
    driven.fail("capacity", 0);
    const first = driven.breaker!;
    for (let count = 0; count < 20; count++) expect(driven.fail("capacity", 1)).toBe(false);
    expect(driven.breaker).toBe(first);
    expect(driven.fail("timeout", driven.until, true)).toBe(true);
    expect(driven.breaker).toMatchObject({ pause: { opens: 2 }, failures: 2, since: first.since });
  });

  test("waiting is of no use after so many openings in a row, unless the cloud has no room", () => {
    const driven = new Driven();
    for (let count = 0; count < 3; count++)
      driven.fail("capacity", driven.breaker?.pause?.until ?? 0, count > 0);
    expect(driven.hopeless).toBe(false);
    driven.fail("timeout", driven.until, true);
    expect(driven.hopeless).toBe(true);
    driven.fail("capacity", driven.until, true);
    expect(driven.hopeless).toBe(false);
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
          if (driven.breaker !== undefined && now < driven.until) continue;
          tried++;
          const opened = driven.fail(kind, now, driven.breaker !== undefined);
          expect(tried).toBeLessThanOrEqual(
            defaultRule.failedPerHour + 1 + (now * defaultRule.failedPerHour) / HOUR,
          );
          if (opened) expect(driven.until).toBeGreaterThan(now);
        }
      },
    ),
  );
});

describe("the record", () => {
  const key = offeringKey({ provider: "cloud", az: null, type: "small" });
  const { breaker } = new Driven().failed("capacity", 5);

  test("is read as it was written, whatever it is of, and names what it is of", () => {
    expect(decodeFailures(key, encodeFailures(key, breaker!))).toEqual(breaker);
    expect(JSON.parse(String(Buffer.from(encodeFailures(key, breaker!))))).toMatchObject({
      provider: "cloud",
      az: null,
      type: "small",
    });
    const { pause: _, ...ofLabel } = breaker!;
    const data = encodeFailures(labelKey("small"), ofLabel);
    expect(decodeFailures(labelKey("small"), data)).toEqual(ofLabel);
    expect(JSON.parse(String(Buffer.from(data)))).toMatchObject({ label: "small" });
  });

  // What the release before wrote: both run side by side while one replaces the other.
  test("of the release before is read", () => {
    const open = `{"v":1,"provider":"cloud","az":null,"type":"small","why":"budget","kind":"fatal","error":"no","failures":7,"opens":2,"since":1,"until":9,"spent":{"level":60,"at":3}}`;
    expect(decodeFailures(key, Buffer.from(open))).toEqual({
      spent: { level: 60, at: 3 },
      failures: 7,
      since: 1,
      kind: "fatal",
      error: "no",
      pause: { why: "budget", opens: 2, until: 9 },
    });
    const label = `{"v":1,"label":"small","spent":{"level":3,"at":2},"failures":3,"since":1,"kind":"timeout","error":"no"}`;
    expect(decodeFailures(labelKey("small"), Buffer.from(label))).toMatchObject({ failures: 3, since: 1 });
  });

  test("that makes no sense is refused by its code", () => {
    const code = (text: string, of = key) => {
      try {
        decodeFailures(of, Buffer.from(text));
      } catch (error) {
        return (error as { code?: string }).code;
      }
      return undefined;
    };
    expect(code("nonsense")).toBe("record.not_json");
    expect(code('{"v": 2}')).toBe("record.version");
    const fields = JSON.parse(String(Buffer.from(encodeFailures(key, breaker!)))) as object;
    expect(code(JSON.stringify({ ...fields, until: "soon" }))).toBe("record.bad_field");
    expect(code(JSON.stringify(fields), "what is this")).toBe("record.bad_id");
  });
});
