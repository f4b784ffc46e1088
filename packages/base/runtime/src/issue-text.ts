import { choices } from "./words.ts";

/**
 * A problem that a schema of zod found; the members that a kind of problem has beside place and message are read when they are there.
 * By its shape, so that this package needs no zod.
 */
export interface SchemaIssue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What zod adds for the kinds of problems that are put into words here. */
interface Details {
  /** Of a bound: what is too big or too small. */
  readonly origin?: string;
  readonly maximum?: number | bigint;
  readonly minimum?: number | bigint;
  readonly inclusive?: boolean;
  /** The type that was expected. */
  readonly expected?: string;
  /** The values that were expected. */
  readonly values?: readonly unknown[];
  readonly keys?: readonly string[];
  readonly pattern?: string;
}

const TYPES: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a string",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

/**
 * One line for a problem: its place in `root`, the value there, and what the value must be, as
 * `capacity.cpu: is 99, but must be at most 64`. `where`: what `root` is, before the place. Of a string that is too long or of a wrong
 * kind, and of lists and objects, only the size or kind is said: they may be secret. `secret`: no string is quoted. `fields`: those of `root`,
 * of which the most similar one is named for one that is unknown.
 */
export function issueText(
  issue: SchemaIssue & Details,
  root: unknown,
  {
    where,
    secret = false,
    fields = [],
  }: { readonly where?: string; readonly secret?: boolean; readonly fields?: readonly string[] } = {},
): string {
  const place = [...(where === undefined ? [] : [where]), ...issue.path.map(String)].join(".");
  const value = valueAt(root, issue.path);
  const [unknown] = issue.code === "unrecognized_keys" && issue.path.length === 0 ? (issue.keys ?? []) : [];
  const hint = unknown === undefined || fields.length === 0 ? "" : `; ${choices(unknown, fields)}`;
  return `${place || "the whole"}: ${sentence(issue, value, secret)}${hint}`;
}

function sentence(issue: SchemaIssue & Details, value: unknown, secret: boolean): string {
  const { code, message, expected, values, keys = [], pattern } = issue;
  const quoted = typeof value === "string" && !secret ? shortened(value) : kindOf(value);
  // A text of the schema's own; what it refines itself may be secret, as a password in a URL.
  if (message.startsWith("must ")) return code === "custom" ? message : `is ${quoted}, but ${message}`;
  switch (code) {
    case "too_big":
    case "too_small":
      return boundText(issue, value, quoted);
    case "invalid_type": {
      const wanted = TYPES[expected ?? ""] ?? expected;
      return value === undefined
        ? `is missing, and must be ${wanted}`
        : `is ${kindOf(value)}, but must be ${wanted}`;
    }
    case "invalid_value": {
      const allowed = (values ?? []).map((one) => JSON.stringify(one)).join(", ");
      const wanted = values?.length === 1 ? allowed : `one of ${allowed}`;
      return value === undefined
        ? `is missing, and must be ${wanted}`
        : `is ${quoted}, but must be ${wanted}`;
    }
    case "invalid_format":
      return `is ${quoted}, but must match ${pattern ?? message}`;
    case "unrecognized_keys":
      return `has unknown fields: ${keys.map((key) => JSON.stringify(key)).join(", ")}; remove them`;
    case "invalid_union":
      return `is ${quoted}, which has none of the allowed forms`;
    default:
      return message;
  }
}

function boundText(issue: SchemaIssue & Details, value: unknown, quoted: string): string {
  const { code, origin, maximum, minimum, inclusive } = issue;
  const words = { too_big: ["at most", "less than"], too_small: ["at least", "more than"] };
  const [closed, open] = words[code as keyof typeof words];
  const bound = `${inclusive === false ? open : closed} ${maximum ?? minimum}`;
  if (origin === "string") return `has ${lengthOf(value)} characters, but must have ${bound}`;
  if (origin === "array") return `has ${lengthOf(value)} entries, but must have ${bound}`;
  // A number of a query is a string here.
  return `is ${quoted}, but must be ${bound}`;
}

/** A number or a boolean as it is; of anything else the kind. */
function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null || typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function lengthOf(value: unknown): number {
  return (value as { readonly length?: number } | undefined)?.length ?? 0;
}

function shortened(text: string): string {
  const quoted = JSON.stringify(text);
  return quoted.length > 60 ? `${quoted.slice(0, 57)}...` : quoted;
}

/** What stands at a place; undefined: nothing does. */
export function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[step] : undefined,
    root,
  );
}
