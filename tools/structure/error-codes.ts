import type { Token } from "./tokens.ts";
import type { SourceFile, Workspace } from "./workspace.ts";

export interface ErrorUse {
  /** `package.what_happened`; the part after the dot is `*` if the program fills it in. */
  readonly code: string;
  /** The class with this code, or undefined if the code is written at the throw. */
  readonly className?: string;
  /** The class's doc comment. */
  readonly doc?: string;
  /** Its message, with an ellipsis for parts that the program fills in; empty if the message is made elsewhere. */
  readonly message: string;
  readonly path: string;
  readonly line: number;
}

const CODE = /^[a-z][a-z0-9]*(-[a-z0-9]+)*\.([a-z0-9_-]+(\.[a-z0-9_-]+)*)?$/;

/** Every error code in shipped code: of classes by their `super(code, …)` or `errorClass(code)`, and of errors without a class. */
export function errorUses(workspace: Workspace): ErrorUse[] {
  return workspace.files.filter((file) => file.part === "src").flatMap(usesIn);
}

function usesIn(file: SourceFile): ErrorUse[] {
  const { tokens, path } = file;
  const found: ErrorUse[] = [];
  let owner: { name: string; doc?: string } | undefined;
  tokens.forEach((token, at) => {
    if (token.kind !== "word") return;
    if (token.text === "class") {
      owner = errorClass(tokens, at);
      // `class StaleError extends errorClass("sliver.stale") {}`
      const code = tokens[at + 3]?.text === "errorClass" ? codeAt(tokens, at + 5) : undefined;
      if (owner !== undefined && code !== undefined) {
        // The message is said here, or where the error is made.
        const message = tokens[at + 6]?.text === "," ? messageAt(tokens, at + 5) : "";
        found.push({ code, message, path, line: token.line, ...named(owner) });
      }
    }
    const made = tokens[at - 1]?.text === "new" && token.text.endsWith("Error");
    const inSuper = token.text === "super" && owner !== undefined;
    if ((!made && !inSuper) || tokens[at + 1]?.text !== "(") return;
    const code = codeAt(tokens, at + 2);
    if (code === undefined) return;
    const of = inSuper ? named(owner!) : {};
    found.push({ code, message: messageAt(tokens, at + 2), path, line: token.line, ...of });
  });
  return found;
}

function errorClass(tokens: readonly Token[], at: number): { name: string; doc?: string } | undefined {
  const name = tokens[at + 1];
  const base = tokens[at + 2]?.text === "extends" ? tokens[at + 3]?.text : undefined;
  if (name === undefined || base === undefined) return undefined;
  const doc = [tokens[at], tokens[at - 1], tokens[at - 2]].find((token) => token?.doc !== undefined)?.doc;
  return { name: name.text, ...(doc === undefined ? {} : { doc }) };
}

function named({ name, doc }: { name: string; doc?: string }): Pick<ErrorUse, "className" | "doc"> {
  return { className: name, ...(doc === undefined ? {} : { doc }) };
}

function codeAt(tokens: readonly Token[], at: number): string | undefined {
  const token = tokens[at];
  if (token?.kind !== "string" || !CODE.test(token.text)) return undefined;
  return token.text.endsWith(".") ? `${token.text}*` : token.text;
}

/** The strings of the argument after the one at `at`, joined. */
function messageAt(tokens: readonly Token[], at: number): string {
  let start = at + 1;
  while (start < tokens.length && tokens[start]!.text !== "," && tokens[start]!.text !== ")") start++;
  let message = "";
  let filled = false;
  let depth = 0;
  for (const { kind, text } of tokens.slice(start + 1)) {
    if (kind === "mark" && (text === ")" || text === "]") && depth-- === 0) break;
    if (kind === "mark" && text === "," && depth === 0) break;
    if (kind === "mark" && (text === "(" || text === "[")) depth++;
    if (kind === "string" && depth === 0) {
      message += filled && text !== "" ? `…${text}` : text;
      filled &&= text === "";
    } else filled ||= text !== "+";
  }
  return message === "" ? "" : `${message}${filled ? "…" : ""}`;
}
