import { labelKey } from "../scheduler/index.ts";

/** Where all launchers count what failed of labels of which nothing works; one that works has no record. */
export const BUDGETS = "/nodeyard/budgets";

/** Failed launches of a label, of all launchers and in all places. */
export interface LabelBudget {
  readonly label: string;
  /** Those that count against the hour's budget; it drains steadily. `at`: tree time, milliseconds. */
  readonly spent: { readonly level: number; readonly at: number };
  /** In a row. */
  readonly failures: number;
  /** Tree time, milliseconds, of the first of these. */
  readonly since: number;
  /** Kind of the last error. */
  readonly kind: string;
  /** Its text, cut. */
  readonly error: string;
}

const VERSION = 1;

export function budgetPath(label: string): string {
  return `${BUDGETS}/${labelKey(label)}`;
}

/** The label of a path under BUDGETS; undefined for any other path. */
export function budgetLabel(path: string): string | undefined {
  const prefix = budgetPath("");
  if (!path.startsWith(prefix)) return undefined;
  try {
    return decodeURIComponent(path.slice(prefix.length));
  } catch {
    return undefined;
  }
}

export function encodeBudget(budget: LabelBudget): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, ...budget }));
}

/** Undefined for what is no budget of a version we read. */
export function decodeBudget(data: Uint8Array): LabelBudget | undefined {
  let value: Partial<Record<keyof LabelBudget | "v", unknown>>;
  try {
    value = (JSON.parse(Buffer.from(data).toString()) ?? {}) as typeof value;
  } catch {
    return undefined;
  }
  const { v, ...fields } = value;
  const { level, at } = (fields.spent ?? {}) as { level?: unknown; at?: unknown };
  const texts = [fields.label, fields.kind, fields.error];
  const numbers = [level, at, fields.failures, fields.since];
  const sound =
    v === VERSION &&
    texts.every((text) => typeof text === "string") &&
    numbers.every((number) => typeof number === "number" && Number.isFinite(number));
  return sound ? (fields as unknown as LabelBudget) : undefined;
}
