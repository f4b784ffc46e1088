import type { LabelConfig } from "./config/compiled.ts";
import type { Grammar } from "./config/grammar.ts";
import type { Log } from "./contract.ts";
import type { CreateOrder, RequestFacts } from "./order.ts";
import { type Metadata, machineMetadata } from "./tags.ts";

/**
 * Fills in a template of the file format (docs/contract/config.md, "Templates"), which has Python's format syntax:
 * `{request.labels[0]!r:>10}`. A problem is the end of a sentence. The caller then omits the key and reports the problem.
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

/** The fields of a request, by the names that templates use. */
export function requestFields(request: RequestFacts): Readonly<Record<string, unknown>> {
  return {
    id: request.id,
    labels: request.labels,
    requestor: request.requestor,
    requestor_data: request.requestorData,
    relative_priority: request.relativePriority,
    event_id: request.eventId,
    created_time: request.createdTime,
    tenant_name: request.tenantName,
  };
}

/**
 * Fills in the templates of a `dynamic-*` key. One that fails is reported by `omit` and left out, so that the machine is still made; its
 * fixed value of the same name, if there is one, then counts.
 */
export function filledTemplates(
  templates: Readonly<Record<string, unknown>>,
  request: RequestFacts,
  omit: (key: string, problem: string) => void,
): Readonly<Record<string, string>> {
  const fields = { request: requestFields(request) };
  const filled: Record<string, string> = {};
  for (const [key, template] of Object.entries(templates)) {
    const result = formatTemplate(template, fields);
    if ("text" in result) filled[key] = result.text;
    else omit(key, result.problem);
  }
  return filled;
}

/** The tags of a machine, of `tagKeys` in the table of its label. Nodeyard's come last: no other may make it look like that of another node. */
export function labelTags({ label, request, tag }: CreateOrder, log: Pick<Log, "warn">): Metadata {
  const { own, name } = label as LabelConfig<Readonly<Record<"tags" | "dynamicTags", Metadata>>>;
  const omit = (key: string, why: string) => log.warn({ label: name, tag: key, why }, "a tag is left out");
  return { ...own.tags, ...filledTemplates(own.dynamicTags, request, omit), ...machineMetadata(tag) };
}

/** What each value of a `dynamic-*` key must be, so that a request can fill it in: about rows of tables. */
export const TEMPLATES: { readonly like: Grammar; readonly instead: string } = {
  like: {
    write: "a template with fields of a request, as in {request.tenant_name}",
    holds: (value) => {
      // What is inside of a field differs by request.
      const outer = typeof value === "string" ? value.replace(INNER, "$1") : value;
      return "text" in formatTemplate(outer, { request: requestFields({} as RequestFacts) });
    },
    right: ["a-{request.id!r:>9}{{}}", "{request.labels[0]}", "{request.requestor_data[job]}", ""],
    wrong: ["{request.tenant}", "{tenant_name}", "{request.id", "}", "{}", "{request.id:,}", 5],
  },
  instead: "is left out",
};

const INNER = /(\{request\.\w+)(?:\.\w+|\[[^\][]+\])+/g;

/** Why a template cannot be filled in, as the end of a sentence. */
class TemplateProblem extends Error {}

interface Field {
  readonly path: readonly { readonly name: string; readonly index: boolean }[];
  /** "s", "r", "a", or "" for none. */
  readonly conversion: string;
  readonly spec: string;
}

/** Literal text, or a field to fill in. */
type Part = string | Field;

const FIELD = /^([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*|\[[^\][]+\])*)(?:!([sra]))?(?::([^{}]*))?$/su;

function parseTemplate(template: string): readonly Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < template.length; ) {
    const here = template[at]!;
    if (here !== "{" && here !== "}") {
      const end = template.slice(at).search(/[{}]/);
      parts.push(end < 0 ? template.slice(at) : template.slice(at, at + end));
      if (end < 0) break;
      at += end;
    } else if (template[at + 1] === here) {
      parts.push(here);
      at += 2;
    } else if (here === "}") {
      throw new TemplateProblem("has a single }; write }}");
    } else {
      const end = template.indexOf("}", at);
      if (end < 0) throw new TemplateProblem("has a { that nothing closes; write {{");
      parts.push(parseField(template.slice(at + 1, end)));
      at = end + 1;
    }
  }
  return parts;
}

function parseField(text: string): Field {
  const match = FIELD.exec(text);
  if (match === null) throw new TemplateProblem(`has the field {${text}}, which is not understood`);
  const [, first, rest = "", conversion = "", spec = ""] = match;
  const steps = rest.match(/\.[A-Za-z_]\w*|\[[^\][]+\]/g) ?? [];
  const path = steps.map((step) =>
    step.startsWith("[") ? { name: step.slice(1, -1), index: true } : { name: step.slice(1), index: false },
  );
  return { path: [{ name: first!, index: false }, ...path], conversion, spec };
}

function fill(part: Part, fields: Readonly<Record<string, unknown>>): string {
  if (typeof part === "string") return part;
  let value: unknown = fields;
  for (const { name, index } of part.path) value = member(value, name, index);
  const text = part.conversion === "r" || part.conversion === "a" ? pythonRepr(value) : pythonStr(value);
  return pad(text, part.spec, value);
}

/** Reads own properties only, so that templates cannot reach the prototype of a JavaScript object. */
function member(value: unknown, name: string, index: boolean): unknown {
  if (Array.isArray(value) && index && /^\d+$/.test(name) && Number(name) < value.length)
    return value[Number(name)];
  const known =
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
  if (!known) throw new TemplateProblem(`names ${name}, which is not there`);
  return (value as Record<string, unknown>)[name];
}

const SPEC = /^(?:(.)?([<>^]))?(\d+)?(?:\.(\d+))?([sd])?$/su;

/** Applies fill, alignment, width and precision. Python's other format options are for numbers, which templates do not contain. */
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

/** Python's `str()` of a JSON value. Tags and metadata made by Nodepool contain this form, and people search for it. */
function pythonStr(value: unknown): string {
  return typeof value === "string" ? value : pythonRepr(value);
}

function pythonRepr(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([key, inner]) => `${quoted(key)}: ${pythonRepr(inner)}`)
      .join(", ")}}`;
  return String(value);
}

/** Single quotes, as in Python, unless double quotes save an escape. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inner = text
    .replaceAll("\\", "\\\\")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t");
  return quote + inner.replaceAll(quote, `\\${quote}`) + quote;
}
