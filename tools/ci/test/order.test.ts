import { expect, test } from "vitest";
import { nextSuite } from "../order.ts";
import type { Suite } from "../suite.ts";

const suite = (name: string, rest: Partial<Suite & Suite["takes"]> = {}): Suite => {
  const { seconds = 10, processors = 1, limit = 1, ...others } = rest;
  return { name, command: ["true"], covers: [], takes: { seconds, processors, limit }, ...others };
};

function begun(suites: readonly Suite[], running: readonly Suite[] = []): string | undefined {
  return nextSuite(suites, running, 2)?.name;
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

test("what runs in the background takes no place", () => {
  const busy = [suite("a"), suite("b"), suite("c")];
  expect(begun([suite("seeds", { background: true, processors: 2 })], busy)).toBe("seeds");
  expect(
    begun([suite("tests", { processors: 2 })], [suite("seeds", { background: true, processors: 2 })]),
  ).toBe("tests");
});

test("a suite that runs alone comes last, and nothing begins beside it", () => {
  const alone = suite("alone", { alone: true, seconds: 1_000 });
  expect(begun([alone, suite("other")])).toBe("other");
  expect(begun([alone], [suite("other")])).toBeUndefined();
  expect(begun([alone])).toBe("alone");
  expect(begun([suite("other")], [alone])).toBeUndefined();
});
