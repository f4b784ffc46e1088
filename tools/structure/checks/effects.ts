import type { Finding } from "../findings.ts";
import { EDGE_FOLDERS, EFFECT_GLOBALS, EFFECT_MEMBERS, EFFECT_MODULES, matches } from "../rules.ts";
import type { Token } from "../tokens.ts";
import type { SourceFile, Workspace } from "../workspace.ts";

/**
 * Only edges touch time, randomness, network, files and processes. All other code receives what it needs, so that a simulation can run it
 * under one seed and a crash can stop it anywhere.
 */
export function checkEffects(workspace: Workspace): Finding[] {
  const inner = workspace.files.filter((file) => file.part === "src" && !isEdge(file.path));
  return inner.flatMap((file) => [...moduleEffects(file), ...globalEffects(file)]);
}

function isEdge(path: string): boolean {
  return path
    .split("/")
    .slice(0, -1)
    .some((folder) => EDGE_FOLDERS.includes(folder));
}

function moduleEffects(file: SourceFile): Finding[] {
  return file.imports.flatMap((one) => {
    if (one.typeOnly) return [];
    const builtin = one.specifier.replace(/^node:/, "").split("/")[0]!;
    const byModule = EFFECT_MODULES.includes(builtin);
    const random =
      builtin === "crypto" && one.names.some((name) => /^(random|generate|\*$|default$)/.test(name));
    if (!byModule && !random) return [];
    const what = random ? `${one.specifier} (${one.names.join(", ")})` : one.specifier;
    return [finding(file, one.line, `imports ${what}`, "what it needs, passed in")];
  });
}

function globalEffects(file: SourceFile): Finding[] {
  const { tokens } = file;
  return tokens.flatMap((token, at) => {
    if (token.kind !== "word" || !isGlobalUse(tokens, at)) return [];
    const { name, remedy } = effectAt(tokens, at) ?? {};
    if (name === undefined || remedy === undefined || isBound(tokens, token.text)) return [];
    return [finding(file, token.line, `uses ${name}`, remedy)];
  });
}

function effectAt(tokens: readonly Token[], at: number): { name: string; remedy: string } | undefined {
  const { text } = tokens[at]!;
  if (Object.hasOwn(EFFECT_GLOBALS, text)) return { name: text, remedy: EFFECT_GLOBALS[text]! };
  if (Object.hasOwn(EFFECT_MEMBERS, text) && tokens[at + 1]?.text === ".") {
    const member = tokens[at + 2]?.text ?? "";
    const rule = Object.entries(EFFECT_MEMBERS[text]!).find(([pattern]) => matches(member, [pattern]));
    if (rule !== undefined) return { name: `${text}.${member}`, remedy: rule[1] };
  }
  return text === "Date" && readsClock(tokens, at) ? { name: "new Date()", remedy: "Clock.now" } : undefined;
}

/** `new Date()`, `new Date` and `Date()` read the clock; `new Date(value)` does not. */
function readsClock(tokens: readonly Token[], at: number): boolean {
  const made = tokens[at - 1]?.text === "new";
  const called = tokens[at + 1]?.text === "(";
  return made ? !called || tokens[at + 2]?.text === ")" : called;
}

/** Not a member of something else, the key of an object, a method's own name, or a type. */
function isGlobalUse(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]?.text;
  if (before === ".") return tokens[at - 2]?.text === "." && tokens[at - 3]?.text === ".";
  if (before === "typeof" || before === "function") return false;
  const next = tokens[at + 1]?.text;
  const listed = before === undefined || "{},;".includes(before) || isModifier(before);
  if (next === ":" || next === "?") return !listed && before !== "(";
  return !(listed && next === "(" && isDefinition(tokens, at + 1));
}

function isModifier(word: string): boolean {
  return ["async", "readonly", "static", "private", "protected", "public", "override"].includes(word);
}

/** Whether the parentheses that open at `open` are followed by a body or a result type. */
function isDefinition(tokens: readonly Token[], open: number): boolean {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (tokens[at]!.text === "(" && tokens[at]!.kind === "mark") depth++;
    if (tokens[at]!.text === ")" && tokens[at]!.kind === "mark") depth--;
    if (depth === 0) return tokens[at + 1]?.text === "{" || tokens[at + 1]?.text === ":";
  }
  return false;
}

/** Whether `name` is a parameter or an import of the file: then it was passed in, and is not the global. */
function isBound(tokens: readonly Token[], name: string): boolean {
  return tokens.some((token, at) => {
    if (token.text !== name || token.kind !== "word") return false;
    const before = tokens[at - 1]?.text ?? "";
    const next = tokens[at + 1]?.text ?? "";
    if (before === "const" || before === "let") return true;
    return (
      ["(", ",", "{"].includes(before) && [":", ",", "}", ")", "?"].includes(next) && isParameter(tokens, at)
    );
  });
}

/** Whether the innermost bracket around `at` is a parameter list, or a destructuring pattern. */
function isParameter(tokens: readonly Token[], at: number): boolean {
  const close = closing(tokens, at);
  const after = tokens.slice(close + 1, close + 3).map((token) => token.text);
  if (tokens[close]?.text === "}" && after[0] === ")") return isParameter(tokens, close + 1);
  if (tokens[close]?.text === "}") return after[0] === "=" || after[0] === ":" || after[0] === "from";
  return after[0] === "{" || after[0] === ":" || (after[0] === "=" && after[1] === ">");
}

function closing(tokens: readonly Token[], start: number): number {
  let depth = 0;
  for (let at = start; at < tokens.length; at++) {
    const { kind, text } = tokens[at]!;
    if (kind !== "mark") continue;
    if ("([{".includes(text)) depth++;
    if (")]}".includes(text) && depth-- === 0) return at;
  }
  return tokens.length;
}

function finding(file: SourceFile, line: number, what: string, remedy: string): Finding {
  const message = `${what} outside ${EDGE_FOLDERS.map((name) => `${name}/`).join(", ")}; take ${remedy}`;
  return { rule: "effect", severity: "error", path: file.path, line, message };
}
