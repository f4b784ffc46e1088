import { readFileSync } from "node:fs";

const lessons = JSON.parse(readFileSync(new URL("./seeds.json", import.meta.url), "utf8")) as {
  readonly seed: number;
  readonly lesson: string;
}[];

/** Seeds that found a fault, and what was learnt from each; one may have taught more than once. */
export const keptSeeds: ReadonlyMap<number, string> = new Map(
  [...Map.groupBy(lessons, ({ seed }) => seed)].map(([seed, taught]) => [
    seed,
    taught.map(({ lesson }) => lesson).join("; "),
  ]),
);
