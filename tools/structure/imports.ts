import type { Token } from "./tokens.ts";

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** Erased before the program runs: `import type` and `export type`. */
  readonly typeOnly: boolean;
  /** The names that are imported, before any renaming; `*` for a whole module, `default` for its default. */
  readonly names: readonly string[];
}

/** Static and dynamic imports, and re-exports. A dynamic import with a computed name is not seen. */
export function importsOf(tokens: readonly Token[]): Import[] {
  const found: Import[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    if (token.kind !== "word" || tokens[at - 1]?.text === ".") continue;
    const one =
      token.text === "import"
        ? readImport(tokens, at)
        : token.text === "export"
          ? readFrom(tokens, at)
          : undefined;
    if (one !== undefined) found.push(one);
  }
  return found;
}

function readImport(tokens: readonly Token[], at: number): Import | undefined {
  const next = tokens[at + 1];
  if (next?.kind === "string") return { specifier: next.text, line: next.line, typeOnly: false, names: [] };
  if (next?.text !== "(") return readFrom(tokens, at);
  const name = tokens[at + 2];
  if (name?.kind !== "string" || tokens[at + 3]?.text === "{") return undefined;
  return { specifier: name.text, line: name.line, typeOnly: false, names: ["*"] };
}

/** `import a, { b as c } from "x"` and `export { b } from "x"`; not an export without `from`. */
function readFrom(tokens: readonly Token[], start: number): Import | undefined {
  let at = start + 1;
  const typeOnly = tokens[at]?.text === "type" && tokens[at + 1]?.text !== "from";
  if (typeOnly) at++;
  const names: string[] = [];
  let braces = 0;
  for (; at < tokens.length; at++) {
    const { kind, text } = tokens[at]!;
    const specifier = tokens[at + 1];
    if (text === "from" && braces === 0 && specifier?.kind === "string")
      return { specifier: specifier.text, line: specifier.line, typeOnly, names };
    if (text === "{") braces++;
    else if (text === "}") braces--;
    else if (text === "*") names.push("*");
    else if (kind === "word") readName(tokens, at, braces, names);
    else if (text !== ",") return undefined;
  }
  return undefined;
}

function readName(tokens: readonly Token[], at: number, braces: number, names: string[]): void {
  const text = tokens[at]!.text;
  if (text === "as" || tokens[at - 1]?.text === "as") return;
  if (text === "type" && braces > 0 && tokens[at + 1]?.kind === "word") return;
  names.push(braces === 0 ? "default" : text);
}
