import { type Part, parseTemplate, TemplateProblem } from "./parse.ts";
import { pythonRepr, pythonStr } from "./python-text.ts";

/**
 * Fills in a template of the file format (docs/contract/config.md, "Templates"), which is Python's format syntax:
 * `{request.labels[0]!r:>10}`. A problem is the end of a sentence; whoever asked leaves the key out and says so.
 */
export function formatTemplate(
  template: unknown,
  fields: Readonly<Record<string, unknown>>,
): { readonly text: string } | { readonly problem: string } {
  if (typeof template !== "string") return { problem: "is not a string" };
  try {
    return {
      text: parseTemplate(template)
        .map((part) => fill(part, fields))
        .join(""),
    };
  } catch (error) {
    if (error instanceof TemplateProblem) return { problem: error.message };
    throw error;
  }
}

function fill(part: Part, fields: Readonly<Record<string, unknown>>): string {
  if (typeof part === "string") return part;
  let value: unknown = fields;
  for (const { name, index } of part.path) value = member(value, name, index);
  const text = part.conversion === "r" || part.conversion === "a" ? pythonRepr(value) : pythonStr(value);
  return pad(text, part.spec, value);
}

/** Own fields only, so that no template reaches what a JavaScript object has besides. */
function member(value: unknown, name: string, index: boolean): unknown {
  if (Array.isArray(value) && index && /^\d+$/.test(name) && Number(name) < value.length)
    return value[Number(name)];
  const known =
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
  if (!known) throw new TemplateProblem(`names ${name}, which is not there`);
  return (value as Record<string, unknown>)[name];
}

const SPEC = /^(?:(.)?([<>^]))?(\d+)?(?:\.(\d+))?([sd])?$/su;

/** Fill, alignment, width and precision; what else Python has is for numbers that no template has. */
function pad(text: string, spec: string, value: unknown): string {
  if (spec === "") return text;
  const match = SPEC.exec(spec);
  if (match === null)
    throw new TemplateProblem(`has the format ${JSON.stringify(spec)}, which is not supported`);
  if (value === null) throw new TemplateProblem("gives a format to None");
  const [, fillText = " ", side = typeof value === "number" ? ">" : "<", width = "0", precision] = match;
  const cut = precision === undefined ? text : text.slice(0, Number(precision));
  const missing = Math.max(0, Math.min(Number(width), 1_000) - cut.length);
  const before = side === "<" ? 0 : side === ">" ? missing : Math.floor(missing / 2);
  return fillText.repeat(before) + cut + fillText.repeat(missing - before);
}
