import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { median, round } from "./lib/statistics.ts";

/** Values of one field, a round each, of both checkouts. */
interface Pair {
  readonly names: Readonly<Record<string, string | number>>;
  readonly here: number[];
  readonly beside: number[];
}

/**
 * The scenarios of this checkout and of another one, in turn, a round each, so that other load of the machine falls on both: one line for each
 * field that both report, with the medians of `rounds` rounds and their ratio, below 1 where this checkout has less. A scenario or a field
 * that only one of them has is left out. The other checkout needs its dependencies (`npm ci`).
 */
export async function* besides(
  other: string,
  scenarios: readonly string[],
  rounds: number,
): AsyncIterable<Readonly<Record<string, string | number>>> {
  const pairs = new Map<string, Pair>();
  for (let n = 0; n < rounds; n += 1)
    // The second of two finds warm caches, so the order changes.
    for (const side of n % 2 === 0 ? (["here", "beside"] as const) : (["beside", "here"] as const)) {
      const root = side === "here" ? join(import.meta.dirname, "..") : other;
      for (const [key, names, value] of await fields(root, scenarios)) {
        const pair = pairs.get(key) ?? { names, here: [], beside: [] };
        pairs.set(key, pair);
        pair[side].push(value);
      }
    }
  for (const { names, here, beside } of pairs.values())
    if (here.length > 0 && beside.length > 0) {
      const [mine, its] = [median(here), median(beside)];
      yield { ...names, here: mine, beside: its, ratio: round(mine / its, 3) };
    }
}

/** The fields of one round: a key that is the same in each round, names that say which, and the value. */
async function fields(root: string, scenarios: readonly string[]) {
  const words = ["tools/run.mjs", "bench/main.ts", ...scenarios, "--rounds", "1"];
  // A limit that one round misses ends it with 1; its figures are whole.
  const { stdout, stderr } = await promisify(execFile)("node", words, {
    cwd: root,
    maxBuffer: 2 ** 26,
  }).catch((error: Error & { stdout?: string; stderr?: string }) => ({
    stdout: error.stdout ?? "",
    stderr: error.stderr || error.message,
  }));
  const found: [key: string, names: Pair["names"], value: number][] = [];
  const seen = new Map<string, number>();
  for (const line of stdout.split("\n").filter((one) => one.startsWith('{"scenario"'))) {
    const figure = Object.entries(JSON.parse(line) as Record<string, string | number>);
    // A text in braces lists what was counted.
    const texts = Object.fromEntries(
      figure.filter(([, value]) => typeof value === "string" && !value.startsWith("{")),
    );
    // Figures that differ in numbers only come in the same order each time.
    const nth = (seen.get(JSON.stringify(texts)) ?? 0) + 1;
    seen.set(JSON.stringify(texts), nth);
    for (const [field, value] of figure) {
      const names = { ...texts, ...(nth > 1 && { nth }), field };
      if (typeof value === "number") found.push([JSON.stringify(names), names, value]);
    }
  }
  if (found.length === 0)
    throw new Error(
      `${root}: no figure of ${scenarios.join(" ")} (a checkout, after npm ci?): ${stderr.trim()}`,
    );
  return found;
}
