import { stripTypeScriptTypes } from "node:module";
import { expect, test } from "vitest";
import { applied, type Change, editOf, NoSuchPlace } from "./change.ts";
import { MUTANTS, type Mutant, mutantsSection, mutated, StaleMutant } from "./index.ts";
import { testsOf } from "./mutant.ts";

const SOURCE = `
const LIMIT = 60_000;
class Leases {
  #expire(lease: Lease, now: number): boolean {
    // Not before its time.
    if (lease.end > now && this.trusted) return false;
    if (lease.held) this.release(lease, { at: now, version: lease.version });
    return lease.nodes.every((node) => node.free || node.gone);
  }
}
export function release(lease: Lease): void {
  const { held } = lease;
  if (held) held.release();
}
`;

function after(change: Change): string {
  return applied(editOf(change, SOURCE), SOURCE);
}

test.each<[Change, string, string]>([
  [{ in: "#expire", drop: "trusted" }, "if (lease.end > now && this.trusted) return false;", "{}"],
  [{ in: "#expire", drop: "version" }, "this.release(lease, { at: now, version: lease.version });", "{}"],
  [{ in: "#expire", without: "trusted" }, "lease.end > now && this.trusted", "(lease.end > now)"],
  [{ in: "#expire", without: "version" }, "{ at: now, version: lease.version }", "{ at: now }"],
  [{ in: "#expire", without: "at" }, "{ at: now, version: lease.version }", "{ version: lease.version }"],
  [{ in: "#expire", negate: "end" }, "lease.end > now", "!(lease.end > now)"],
  [{ in: "#expire", always: "end trusted" }, "lease.end > now && this.trusted", "true"],
  [{ in: "Leases.#expire", never: "held" }, "if (lease.held)", "if (false)"],
  [{ set: "LIMIT", to: "1" }, "60_000", "(1)"],
  [{ in: "#expire", set: "version", to: "0" }, "version: lease.version", "version: (0)"],
  [
    { in: "#expire", set: "return every", to: "true" },
    "lease.nodes.every((node) => node.free || node.gone)",
    "(true)",
  ],
  [
    { in: "#expire", call: "every", by: "true" },
    "lease.nodes.every((node) => node.free || node.gone)",
    "(true)",
  ],
  [{ in: "#expire", replace: "lease.end>now", by: "now > 0" }, "lease.end > now", "(now > 0)"],
  [{ in: "release", instead: "release", do: "return;" }, "held.release();", "{ return; }"],
  [{ in: "release", before: "release", do: "return;" }, "held.release();", "{ return; held.release(); }"],
])("%j", (change, old, text) => {
  expect(SOURCE).toContain(old);
  expect(after(change)).toBe(SOURCE.replace(old, text));
});

test("a change that fits no place, or several, is refused", () => {
  expect(() => after({ in: "#expire", drop: "gone now" })).toThrow(/"gone now" fits 0 places/);
  expect(() => after({ in: "#expire", never: "lease" })).toThrow(/"lease" fits 3 places/);
  expect(() => after({ in: "expire", drop: "held" })).toThrow(NoSuchPlace);
});

test("every mutant fits the present source exactly once, and the result is a program", () => {
  for (const mutant of MUTANTS)
    expect(() => stripTypeScriptTypes(mutated(mutant)), mutant.name).not.toThrow();
});

test("a mutant whose source has moved is refused, with its name and the remedy", () => {
  const some: Mutant = {
    name: "some",
    breaks: "rule 1",
    at: "scheduler/plan",
    edit: (source) => editOf({ in: "gone", drop: "a" }, source),
    tests: [],
  };
  expect(() => mutated(some)).toThrow(/mutant some: 0 functions are called gone, not one.*Adapt it/);
  expect(() => mutated({ ...some, at: "scheduler/no-such-file" })).toThrow(StaleMutant);
});

test("names are unique and in kebab-case; the tests that a mutant names exist", () => {
  const names = MUTANTS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const mutant of MUTANTS) {
    expect(mutant.name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
    expect(() => testsOf(mutant), mutant.name).not.toThrow();
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
