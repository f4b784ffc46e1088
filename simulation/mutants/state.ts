import { existsSync, readFileSync } from "node:fs";
import { MUTANTS } from "./list.ts";

/** The result of one mutant when it was last tried. */
export interface Verdict {
  /** What caught it: a seed with the rule that it broke, or the test that failed. Absent: it survived. */
  readonly seed?: { readonly number: number; readonly rule: string };
  readonly test?: { readonly file: string; readonly name: string };
  /** Seeds that it was run with. */
  readonly tried: number;
  /** Seeds or tests that did not end in time: they catch nothing. */
  readonly endless: number;
  /** The simulation does not load the changed file: no seed can catch it. */
  readonly outside?: boolean;
  readonly revision: string;
}

/** By the mutant's name. */
export type MutantState = Record<string, Verdict>;

export function isCaught(verdict: Verdict | undefined): boolean {
  return verdict?.seed !== undefined || verdict?.test !== undefined;
}

/** Seeds that a mutant must have survived before it counts as a survivor. */
export const ENOUGH = 40;

/** Whether the result is final: caught, or tried by everything that might catch it. */
export function isDecided(verdict: Verdict | undefined): boolean {
  if (verdict === undefined) return false;
  return isCaught(verdict) || verdict.tried >= ENOUGH || verdict.outside === true;
}

/** The state of the mutants that are still in the list, from a file; empty if there is no file. */
export function readMutants(file: string): MutantState {
  if (!existsSync(file)) return {};
  const all = JSON.parse(readFileSync(file, "utf8")) as MutantState;
  return Object.fromEntries(MUTANTS.flatMap(({ name }) => (all[name] ? [[name, all[name]]] : [])));
}

/**
 * How many mutants of the list were tried to the end, and how many of them were caught. One that is not tried to the end does not count.
 */
export function scoreOf(state: MutantState): {
  readonly tried: number;
  readonly caught: number;
  readonly share: number;
} {
  const tried = MUTANTS.filter(({ name }) => isDecided(state[name])).length;
  const caught = MUTANTS.filter(({ name }) => isCaught(state[name])).length;
  return { tried, caught, share: tried === 0 ? 0 : caught / tried };
}

/** The section of docs/reference/simulation.md about mutants. */
export function mutantsSection(state: MutantState): string {
  const { tried, caught, share } = scoreOf(state);
  const bySeed = MUTANTS.filter(({ name }) => state[name]?.seed !== undefined).length;
  const survivors = MUTANTS.filter(({ name }) => state[name] !== undefined && !isCaught(state[name]));
  const open = (name: string) =>
    isDecided(state[name]) ? "" : `, after ${state[name]?.tried} of ${ENOUGH} seeds`;
  const why = survivors.map(
    ({ name, survives }) => `- ${name}: ${survives ?? "nothing catches it yet"}${open(name)}\n`,
  );
  return `## Mutants

Small faults of the product, of which seeds and tests must catch 90 % (\`npm run mutate\`). Caught: ${caught} of ${MUTANTS.length} (${percent(caught / MUTANTS.length)}), ${bySeed} by
seeds and ${caught - bySeed} by tests. Tried to the end: ${tried}, of which ${percent(share)} are caught; open after fewer seeds: ${survivors.length - (tried - caught)};
the others were not tried yet.

${survivors.length === 0 ? "" : `Survivors:\n\n${why.join("")}\n`}| Mutant | Breaks | Caught by | Seeds tried | Revision |
|---|---|---|---|---|
${MUTANTS.map((mutant) => row(mutant, state[mutant.name])).join("")}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function row({ name, breaks }: (typeof MUTANTS)[number], verdict: Verdict | undefined): string {
  const { seed, test, tried = 0, endless = 0, revision = "" } = verdict ?? {};
  const by =
    seed !== undefined
      ? `seed ${seed.number}: ${seed.rule}`
      : test !== undefined
        ? `${test.file}: ${test.name}`
        : verdict === undefined
          ? "not tried yet"
          : `nothing${endless > 0 ? `; ${endless} runs did not end` : ""}`;
  return `| ${name} | ${breaks} | ${by.replaceAll("|", "\\|")} | ${tried} | ${revision} |\n`;
}
