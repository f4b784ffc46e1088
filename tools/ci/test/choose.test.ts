import { expect, test } from "vitest";
import { choose, type Situation } from "../choose.ts";
import type { Suite } from "../suite.ts";

const some = { command: ["true"], covers: [], takes: { seconds: 1, processors: 1, limit: 1 } };
const SUITES: readonly Suite[] = [
  { ...some, name: "check", always: true },
  { ...some, name: "far-end", turn: 5 },
  { ...some, name: "cloud", covers: ["packages/driver-cloud/**"], turn: 2, needs: ["far-end"] },
  { ...some, name: "kills", covers: ["packages/base/tree/**"], turn: 3 },
];

function chosen(situation: Partial<Situation>): Record<string, string> {
  const whole = { commits: 12, ...since(), ...situation };
  return Object.fromEntries(
    choose(SUITES, whole).map(({ suite, runs, why }) => [suite.name, `${runs}: ${why}`]),
  );
}

const since = (...paths: string[]) => ({ changedSince: () => ({ since: "abcdef12", paths }) });

test("a change runs the suites that cover it, with what they need, and names the first path", () => {
  const paths = ["README.md", "packages/driver-cloud/src/a.ts", "packages/driver-cloud/test/b.ts"];
  expect(chosen(since(...paths))).toEqual({
    check: "true: always",
    "far-end": "true: cloud needs it",
    cloud: "true: packages/driver-cloud/src/a.ts and 1 more changed",
    kills: "false: nothing that it covers changed since abcdef12; its turn in 3 commits",
  });
});

test("a suite has its turn at every sixth commit, whatever changed", () => {
  for (let commits = 0; commits < 24; commits++)
    expect(chosen({ commits }).kills!.startsWith("true"), `commit ${commits}`).toBe(commits % 6 === 3);
  expect(chosen({ commits: 15 }).kills).toBe("true: its turn at commit 15");
});

test("a change of the run itself, or of what all suites stand on, runs all of them", () => {
  for (const path of ["tools/ci/run-suite.ts", "package-lock.json", ".ci/run"]) {
    expect(Object.values(chosen(since(path))).filter((one) => one.startsWith("false"))).toEqual([]);
  }
});

test("a note of what passed is no change, nor is one of which suites run", () => {
  expect(chosen(since(".ci/last-whole", "tools/ci/suites.ts")).kills).toMatch(/^false/);
});

test("a suite of which it is not known what changed runs", () => {
  const changedSince = (name: string) => (name === "kills" ? "no run of it" : since().changedSince());
  expect(chosen({ changedSince })).toMatchObject({
    cloud: "false: nothing that it covers changed since abcdef12; its turn in 2 commits",
    kills: "true: no run of it",
  });
});
