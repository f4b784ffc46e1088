import { type ImageBuildRecord, imageBuildStates } from "@nodeyard/model";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { delayAfter, whenToBuild } from "../src/core/when.ts";
import { build, HOUR } from "./support.ts";

const base = {
  now: 100 * HOUR,
  builds: [] as ImageBuildRecord[],
  formats: ["qcow2"],
  rebuildAgeMs: 24 * HOUR,
  paused: false,
  requestedAt: undefined as number | undefined,
  changed: new Set<string>(),
};

describe("when an image is built", () => {
  test.each([
    ["there is no ready build", {}, { build: true, cause: "first" }],
    ["it is paused, though somebody asks", { paused: true, requestedAt: 1 }, { build: false, why: "paused" }],
    ["nobody wants a format", { formats: [] }, { build: false, why: "no-formats" }],
    [
      "the newest is young",
      { builds: [build("a", "ready", 99 * HOUR)] },
      { build: false, why: "fresh", at: 123 * HOUR },
    ],
    [
      "it is exactly as old as it may get",
      { builds: [build("a", "ready", 76 * HOUR)] },
      { build: true, cause: "age" },
    ],
    [
      "a format is missing in the newest, though an older one has it",
      {
        formats: ["qcow2", "raw"],
        builds: [build("a", "ready", 99 * HOUR), build("b", "ready", 98 * HOUR, ["qcow2", "raw"])],
      },
      { build: true, cause: "formats" },
    ],
    [
      "fewer formats are wanted than it has",
      { builds: [build("a", "ready", 99 * HOUR, ["qcow2", "raw"])] },
      { build: false, why: "fresh", at: 123 * HOUR },
    ],
    [
      "what the newest was made of has changed",
      { builds: [build("a", "ready", 99 * HOUR)], changed: new Set(["a"]) },
      { build: true, cause: "sources" },
    ],
    [
      "what an older one was made of has changed, and the newest is another host's",
      { builds: [build("a", "ready", 98 * HOUR), build("b", "ready", 99 * HOUR)], changed: new Set(["a"]) },
      { build: false, why: "fresh", at: 123 * HOUR },
    ],
    [
      "a build is requested",
      { builds: [build("a", "ready", 99 * HOUR)], requestedAt: 99.5 * HOUR },
      { build: true, cause: "request" },
    ],
    [
      "it failed a moment ago",
      { builds: [build("a", "failed", 100 * HOUR - 1)] },
      { build: false, why: "back-off", at: 100 * HOUR - 1 + 60_000 },
    ],
    [
      "a build is requested after a failure",
      { builds: [build("a", "failed", 100 * HOUR - 1000)], requestedAt: 100 * HOUR - 500 },
      { build: true, cause: "request" },
    ],
    [
      "the requested build has failed",
      { builds: [build("a", "failed", 100 * HOUR - 500)], requestedAt: 100 * HOUR - 1000 },
      { build: false, why: "back-off", at: 100 * HOUR - 500 + 60_000 },
    ],
    [
      "failures before the last success do not count",
      { builds: [build("a", "failed", 70 * HOUR), build("b", "ready", 76 * HOUR)] },
      { build: true, cause: "age" },
    ],
  ] as const)("%s", (_, facts, choice) => {
    expect(whenToBuild({ ...base, ...facts })).toEqual(choice);
  });

  test("an image that always fails is tried six times in its worst hour, whatever the clock says of records", () => {
    const builds: ImageBuildRecord[] = [];
    const tries: number[] = [];
    let now = 100 * HOUR;
    while (now < 110 * HOUR) {
      const choice = whenToBuild({ ...base, now, builds });
      if (choice.build) {
        tries.push(now);
        builds.push(build(`b${tries.length}`, "failed", now));
      } else now = Math.max(now + 1, choice.at ?? Number.POSITIVE_INFINITY);
    }
    const worst = Math.max(
      ...tries.map((from) => tries.filter((at) => at >= from && at < from + HOUR).length),
    );
    expect(worst).toBeLessThanOrEqual(6);
    expect(tries.length).toBeGreaterThan(15);
    expect(delayAfter(1_000)).toBe(30 * 60_000);
  });

  test("it always builds, or says when to look again, or waits for an event", () => {
    const builds = fc.array(
      fc.record({
        id: fc.constantFrom("a", "b", "c"),
        state: fc.constantFrom(...imageBuildStates),
        at: fc.integer({ min: 0, max: 200 * HOUR }),
      }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(builds, fc.integer({ min: 0, max: 200 * HOUR }), fc.boolean(), (list, now, asked) => {
        const facts = {
          ...base,
          now,
          builds: list.map(({ id, state, at }) => build(id, state, at)),
          requestedAt: asked ? now : undefined,
        };
        const choice = whenToBuild(facts);
        if (choice.build) return;
        expect(choice.why).not.toBe("paused");
        expect(choice.at).toBeGreaterThan(now);
        if (asked) expect(list.some(({ state, at }) => state === "failed" && at >= now)).toBe(true);
        // When the time has come, the answer is another one.
        const later = whenToBuild({ ...facts, now: choice.at! });
        if (!later.build) expect(later.at).toBeGreaterThan(choice.at!);
      }),
    );
  });
});

describe("a clock that was put back by two days", () => {
  const failed = (id: string, at: number) => build(id, "failed", at);
  const whenTold = (builds: ImageBuildRecord[]) => whenToBuild({ ...base, builds });

  test("failures from before hold nothing up, and count for the wait after the next one", () => {
    const before = [failed("a", 148 * HOUR), failed("b", 148.1 * HOUR)];
    expect(whenTold(before)).toEqual({ build: true, cause: "first" });
    const after = [...before, failed("c", base.now - 1_000)];
    expect(whenTold(after)).toEqual({ build: false, why: "back-off", at: base.now - 1_000 + delayAfter(3) });
  });

  test("a ready build from before does not hide the failures after it", () => {
    const builds = [build("a", "ready", 148 * HOUR), failed("b", base.now - 1_000)];
    const choice = whenToBuild({ ...base, builds, formats: ["qcow2", "raw"] });
    expect(choice).toEqual({ build: false, why: "back-off", at: base.now - 1_000 + delayAfter(1) });
  });
});
