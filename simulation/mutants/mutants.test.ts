import { existsSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { MUTANTS, type Mutant, mutantsSection, mutated, StaleMutant } from "./index.ts";
import { fileOf } from "./load.ts";

const root = resolve(import.meta.dirname, "../..");
const some: Mutant = { name: "some", breaks: "rule 1", file: "a.ts", find: "a < b", put: "a <= b" };

test("every mutant fits the present source exactly once, and the result is a program", () => {
  for (const mutant of MUTANTS) {
    const source = readFileSync(fileOf(mutant), "utf8");
    const fault = mutated(mutant, source);
    expect(fault).not.toBe(source);
    expect(() => stripTypeScriptTypes(fault), mutant.name).not.toThrow();
  }
});

test("a mutant whose source has moved is refused, with its name and the remedy", () => {
  expect(mutated(some, "if (a < b) return;")).toBe("if (a <= b) return;");
  for (const source of ["if (a > b) return;", "a < b && a < b"])
    expect(() => mutated(some, source)).toThrow(StaleMutant);
  expect(() => mutated(some, "")).toThrow(/mutant some: "a < b" occurs 0 times in a.ts.*Adapt it/);
});

test("names are unique and in kebab-case; the tests that a mutant names exist", () => {
  const names = MUTANTS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, tests = [] } of MUTANTS) {
    expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
    for (const file of tests) expect(existsSync(`${root}/${file}.test.ts`), `${name}: ${file}`).toBe(true);
  }
});

test("the page has the score, what caught each mutant, and the survivors", () => {
  const [first, second] = MUTANTS;
  const verdict = { tried: 40, endless: 0, revision: "abc" };
  const page = mutantsSection({
    [first!.name]: { ...verdict, seed: { number: 3, rule: "a slot has one node" } },
    [second!.name]: verdict,
  });
  const share = (100 / MUTANTS.length).toFixed(1);
  expect(page).toContain(`Caught: 1 of ${MUTANTS.length} (${share} %), 1 by\nseeds and 0 by tests.`);
  expect(page).toContain("Tried to the end: 2, of which 50.0 % are caught; open after fewer seeds: 0;");
  expect(page).toContain(`| ${first!.name} | ${first!.breaks} | seed 3: a slot has one node | 40 | abc |`);
  expect(page).toContain(`- ${second!.name}: `);
  expect(mutantsSection({ [second!.name]: { ...verdict, tried: 1 } })).toContain("Tried to the end: 0,");
});
