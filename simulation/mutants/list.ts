import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { change, editOf } from "./change.ts";
import { generatedMutant } from "./generated.ts";
import type { Mutant } from "./mutant.ts";

const folder = new URL("./list/", import.meta.url);
const fault = change.extend({
  breaks: z.string(),
  tests: z.array(z.string()).optional(),
  survives: z.string().optional(),
});
const ofFile = z.object({ tests: z.array(z.string()).default([]) }).catchall(fault);
const list = z.record(z.string(), ofFile);

/**
 * One mutant for each guarantee and each fence: add one with each new guarantee or fence, in `list/`. A file of the product has its faults
 * by their names, and `tests` for those that name none.
 */
export const MUTANTS: readonly Mutant[] = readdirSync(folder)
  .sort()
  .flatMap((name) => Object.entries(list.parse(parse(readFileSync(new URL(name, folder), "utf8")))))
  .flatMap(([at, { tests: usual, ...faults }]) =>
    Object.entries(faults).map(([name, { breaks, tests = usual, survives, ...rest }]) => ({
      name,
      breaks,
      at,
      edit: (source: string) => editOf(rest, source),
      tests,
      survives,
    })),
  );

/** Of the list, or a generated one. */
export function mutantOf(name: string): Mutant {
  if (name.includes("/")) return generatedMutant(name);
  const found = MUTANTS.find((mutant) => mutant.name === name);
  if (found === undefined) throw new Error(`there is no mutant ${name}: see npm run mutate -- --list`);
  return found;
}
