import { execFileSync } from "node:child_process";
import { matchesGlob } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { TURNS } from "../suite.ts";
import { EVERYWHERE, SUITES } from "../suites.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const FILES = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 })
  .trim()
  .split("\n");
/** What is installed or run by users, without what only describes it. */
const PRODUCT = ["packages/*/*/{src,browser,build}/**", "elements/**", "packaging/**", "examples/**"];

const isIn = (path: string, patterns: readonly string[]) => patterns.some((one) => matchesGlob(path, one));

test("each file of the product is covered by a suite", () => {
  const product = FILES.filter((path) => isIn(path, PRODUCT) && !path.endsWith(".md"));
  expect(product.length).toBeGreaterThan(1_000);
  expect(product.filter((path) => !SUITES.some(({ covers }) => isIn(path, covers)))).toEqual([]);
});

test("each pattern of the table is of files that exist", () => {
  const patterns = [...EVERYWHERE, ...SUITES.flatMap(({ covers }) => covers)];
  expect(patterns.filter((pattern) => !FILES.some((path) => matchesGlob(path, pattern)))).toEqual([]);
});

/** Processor seconds of what one turn adds to a run: the longest suite has the most of them. */
const MOST_OF_A_TURN = 1_800;

test("each suite runs always or has a turn, and no turn costs much more than its neighbours", () => {
  expect(SUITES.filter(({ always, turn }) => (always === true) === (turn !== undefined))).toEqual([]);
  const needed = SUITES.flatMap(({ needs = [] }) => needs);
  const turns = SUITES.filter(({ name, always }) => !always && !needed.includes(name));
  for (let turn = 0; turn < TURNS; turn++) {
    const costs = turns
      .filter((one) => one.turn === turn)
      .map(({ takes }) => takes.seconds * takes.processors);
    expect(costs.length, `turn ${turn}`).toBeGreaterThan(0);
    expect(
      costs.reduce((sum, cost) => sum + cost),
      `turn ${turn}`,
    ).toBeLessThanOrEqual(MOST_OF_A_TURN);
  }
});

test("names are unique, and what a suite waits for stands before it", () => {
  const names = SUITES.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const [at, { name, needs = [], after = [] }] of SUITES.entries())
    for (const one of [...needs, ...after])
      expect(names.slice(0, at), `${name} waits for ${one}`).toContain(one);
});
