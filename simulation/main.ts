import { parseArgs } from "node:util";
import { loadMutant, MUTANTS, type Mutant } from "./mutants/index.ts";

const HELP = `npm run simulate -- [options]

  --seed N          run one seed and print what happens
  --seeds N         number of seeds (default 1000), on all cores
  --from N          the first seed (default 1)
  --kept            of these, those that found a fault before (seeds.json) first, and as many fewer of the others
  --workers N       seeds at once (default: the number of cores)
  --mutant NAME     run the product with this fault; npm run mutate -- --list names all
  --state FILE      keep results there, and continue from them
  --report FILE     write the page of results
  --json            one line of JSON at the end, none before

Exit code 0: no rule was broken and, with 200 seeds or more, every kind of event happened; 1: otherwise; 2: wrong options.
`;

const { values } = options();
if (values.help === true) console.log(HELP);
else if (values.seed === undefined) await many();
else await one(number(values.seed));

function options() {
  try {
    return parseArgs({
      options: {
        help: { type: "boolean" },
        seed: { type: "string" },
        seeds: { type: "string", default: "1000" },
        from: { type: "string", default: "1" },
        kept: { type: "boolean", default: false },
        workers: { type: "string" },
        mutant: { type: "string" },
        state: { type: "string" },
        report: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function refuse(why: string): never {
  console.error(`${why}\n\n${HELP}`);
  process.exit(2);
}

function number(text: string): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : refuse(`${text} is not a positive number`);
}

function mutant(): Mutant | undefined {
  const { mutant: name } = values;
  if (name === undefined) return undefined;
  return MUTANTS.find((each) => each.name === name) ?? refuse(`there is no mutant ${name}`);
}

/** Imports that load the product come only now: a mutant is applied while the product is loaded. */
async function one(seed: number): Promise<void> {
  const fault = mutant();
  if (fault !== undefined) loadMutant(fault);
  const { runOne } = await import("./one.ts");
  await runOne(seed);
}

async function many(): Promise<void> {
  const { state, report, json, kept } = values;
  const [first, count] = [number(values.from), number(values.seeds)];
  const others = Array.from({ length: count }, (_, index) => first + index);
  const { keptSeeds } = await import("./kept-seeds.ts");
  const seeds = kept ? [...new Set([...keptSeeds.keys(), ...others])].slice(0, count) : others;
  const { runMany } = await import("./many.ts");
  await runMany({
    seeds,
    mutant: mutant()?.name,
    workers: values.workers === undefined ? undefined : number(values.workers),
    state,
    report,
    json,
    refuse,
  });
}
