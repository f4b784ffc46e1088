import type { Row } from "@nodeyard/operations/listing";
import { choices } from "@nodeyard/runtime";
import { type Command, Option } from "commander";
import type { Backend } from "./backend/backend.ts";
import { CommandError, UsageError } from "./errors.ts";
import type { Session } from "./session.ts";

/** Limits a list to rows that have one of the values of each filter; absent: any. The values of one filter are alternatives. */
export interface Filters {
  readonly state?: readonly string[];
  readonly provider?: readonly string[];
  readonly pool?: readonly string[];
  readonly label?: readonly string[];
}

type Filter = keyof Filters;

/** Keys of rows that a filter looks at, the first that a row has: each list calls its labels differently. */
const KEYS: Readonly<Record<Filter, readonly string[]>> = {
  state: ["state", "standing"],
  provider: ["provider"],
  pool: ["pool"],
  label: ["label", "labels"],
};

/** Gives a list its filters. `states`: those there are. */
export function addFilters(command: Command, names: readonly Filter[], states: readonly string[]): void {
  for (const name of names) {
    const option = new Option(`--${name} <${name}>`, `only rows with this ${name}; may be repeated`);
    // For the help and for completion: the parser below has an error of its own.
    if (name === "state") option.choices(states);
    command.addOption(
      option.argParser((value: string, before: readonly string[] = []) => {
        if (name === "state" && !states.includes(value))
          throw new UsageError(
            `--state ${JSON.stringify(value)} is not a state here; ${choices(value, states)}`,
          );
        return [...before, value];
      }),
    );
  }
}

/** The rows that pass all filters. An unknown name is an error, because an empty list would look like "none left". */
export async function filtered(
  session: Session,
  backend: Backend,
  rows: readonly Row[],
  filters: Filters,
): Promise<readonly Row[]> {
  let left = rows;
  for (const name of ["state", "provider", "pool", "label"] as const) {
    const wanted = filters[name];
    // A list that filters by another key has done so.
    if (wanted === undefined) continue;
    for (const value of wanted)
      if (name !== "state" && !rows.some((row) => valuesOf(row, name).includes(value)))
        await demandName(session, backend, name, value);
    left = left.filter((row) => valuesOf(row, name).some((value) => wanted.includes(String(value))));
  }
  return left;
}

/** The values of a row that a filter compares; a list of labels is several values. Empty for a row that lacks the key. */
function valuesOf(row: Row, name: Filter): readonly unknown[] {
  const key = KEYS[name].find((one) => row[one] !== undefined);
  return key === undefined ? [] : [row[key]].flat();
}

/** Throws CommandError unless a launcher knows the name: a pool or label without rows is right, a misspelt one is not. */
async function demandName(
  session: Session,
  backend: Backend,
  name: Exclude<Filter, "state">,
  value: string,
): Promise<void> {
  if (name === "provider") {
    // It reads configurations, which a list that finds something does without.
    const { demandProvider } = await import("./names.ts");
    return demandProvider(session, backend, value);
  }
  const { rows } = await backend.list("list_labels");
  // Names that launchers have, for the error.
  const known = new Set(rows.flatMap(({ label, pools }) => (name === "pool" ? pools.map(poolIn) : label)));
  if (known.has(value)) return;
  throw new CommandError(
    `cli.no_${name}`,
    `no launcher has a ${name} ${JSON.stringify(value)}, and nothing in this list has it; ${choices(value, known)}`,
  );
}

/** The name of a pool after that of its provider. */
function poolIn(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}
