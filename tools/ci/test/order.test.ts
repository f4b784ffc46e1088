import { expect, test } from "vitest";
import { isTooLate, limitOf, nextSuite, withDependents } from "../order.ts";
import type { Suite } from "../suite.ts";

const suite = (name: string, rest: Partial<Suite & Suite["takes"]> = {}): Suite => {
  const { seconds = 10, processors = 1, limit = 1, ...others } = rest;
  return { name, command: ["true"], covers: [], takes: { seconds, processors, limit }, ...others };
};

function begun(suites: readonly Suite[], running: readonly Suite[] = []): string | undefined {
  return nextSuite(suites, running, { processors: 2, commits: 8 })?.name;
}

test("the longest begins first, with all that waits for it counted", () => {
  const build = suite("build", { seconds: 5 });
  const tests = suite("tests", { seconds: 100, needs: ["build"] });
  const more = suite("more", { seconds: 100, after: ["build"] });
  expect(begun([suite("middle", { seconds: 50 }), build, tests])).toBe("build");
  expect(begun([suite("middle", { seconds: 200 }), build, tests])).toBe("middle");
  expect(begun([suite("middle", { seconds: 200 }), build, tests, more])).toBe("build");
});

test("a suite waits for the end of what it needs", () => {
  const tests = suite("tests", { needs: ["build"] });
  expect(begun([tests], [suite("build")])).toBeUndefined();
  expect(begun([tests], [suite("other")])).toBe("tests");
  const images = suite("images", { after: ["build"] });
  expect(begun([images], [suite("build")])).toBeUndefined();
});

test("another one begins as long as a processor is idle", () => {
  expect(begun([suite("one")], [suite("a"), suite("b")])).toBeUndefined();
  expect(begun([suite("one")], [suite("a"), suite("b", { processors: 0.5 })])).toBe("one");
  expect(begun([suite("huge", { processors: 9 })])).toBe("huge");
});

test("what each run has begins before the longest, and before others what has its turn", () => {
  const cloud = suite("cloud", { seconds: 900, turn: 1 });
  const kills = suite("kills", { seconds: 400, turn: 2 });
  expect(begun([cloud, kills, suite("tests", { always: true })])).toBe("tests");
  expect(begun([cloud, kills])).toBe("kills");
});

test("a suite that would end too late for its CI is left out, unless each run has it", () => {
  const cloud = suite("cloud", { seconds: 900 });
  expect([40, 41].map((minute) => isTooLate(cloud, minute * 60, [cloud]))).toEqual([false, true]);
  expect(isTooLate({ ...cloud, always: true }, 5_000, [cloud])).toBe(false);
});

test("a suite leaves time for those of each run that come last", () => {
  const [cloud, last] = [
    suite("cloud", { seconds: 900 }),
    { always: true, alone: true, seconds: 150 } as const,
  ];
  const left = [cloud, suite("mutants", last), suite("day", { alone: true, seconds: 1_000 })];
  expect([35, 36].map((minute) => isTooLate(cloud, minute * 60, left))).toEqual([false, true]);
});

test("a suite that runs alone comes last, and nothing begins beside it", () => {
  const alone = suite("alone", { alone: true, seconds: 1_000 });
  expect(begun([alone, suite("other")])).toBe("other");
  expect(begun([alone], [suite("other")])).toBeUndefined();
  expect(begun([alone])).toBe("alone");
  expect(begun([suite("other")], [alone])).toBeUndefined();
});

test("what hangs is ended before its CI ends the run", () => {
  expect(limitOf(3_600_000, 60)).toBe(3_600_000);
  expect(limitOf(3_600_000, 60 * 60)).toBe(22 * 60_000);
});

test("what needs a suite, directly or not, goes with it once", () => {
  const servers = suite("servers", { needs: ["build"] });
  const day = suite("day", { needs: ["build", "servers"] });
  const after = suite("release", { after: ["build"] });
  const names = withDependents(suite("build"), [day, after, servers]).map(({ name }) => name);
  expect(names).toEqual(["build", "day", "servers"]);
});
