import { posix } from "node:path";
import type { Finding } from "../findings.ts";
import type { Token } from "../tokens.ts";
import { isRelative, resolveRelative, type SourceFile, type Workspace } from "../workspace.ts";

const MODIFIERS = new Set(["declare", "abstract", "async"]);
const ROOM_DOOR = /^packages\/nodeyard\/src\/[^/]+\/index\.ts$/;
const KINDS = new Set(["const", "let", "function", "class", "interface", "type"]);

/** One exported declaration of a file. */
interface Declaration {
  readonly name: string;
  readonly line: number;
  readonly hasDoc: boolean;
}

/** Every name that a door of a package or room exports has a doc comment where it is declared. Generated files are not checked. */
export function checkDocs(workspace: Workspace): Finding[] {
  const files = new Map(workspace.files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  return doorsOf(workspace).flatMap((door) => {
    const found = namesOf(door).flatMap(([path, name]) => undocumented(files, path, name, seen));
    return [...found, ...(files.has(door.path) ? undocumented(files, door.path, "*", seen) : [])];
  });
}

/** Doors of packages are the targets of `exports`; a door of a room is its `index.ts`. */
function doorsOf({ packages, files }: Workspace): SourceFile[] {
  const targets = new Set(
    packages.flatMap(({ folder, manifest }) =>
      Object.values(manifest.exports ?? {}).flatMap((target) =>
        typeof target === "string" ? [posix.join(folder, target)] : [],
      ),
    ),
  );
  return files.filter(({ path }) => targets.has(path) || ROOM_DOOR.test(path));
}

/** The files and names that a file exports again from its own package; names that it only imports are among them. */
function namesOf(file: SourceFile): (readonly [path: string, name: string])[] {
  return file.imports
    .filter(({ specifier }) => isRelative(specifier))
    .flatMap(({ specifier, names }) =>
      names.map((name) => [resolveRelative(file, specifier), name] as const),
    );
}

function undocumented(
  files: ReadonlyMap<string, SourceFile>,
  path: string,
  name: string,
  seen: Set<string>,
): Finding[] {
  const file = files.get(path);
  const key = `${path} ${name}`;
  if (file === undefined || seen.has(key)) return [];
  seen.add(key);
  const own = declarationsOf(file.tokens).filter((one) => name === "*" || one.name === name);
  if (own.length === 0)
    return namesOf(file)
      .filter(([, inner]) => inner === name || inner === "*")
      .flatMap(([target]) => undocumented(files, target, name, seen));
  // The overloads of a function need one doc comment together.
  const named = own.filter((one) => !own.some((other) => other.hasDoc && other.name === one.name));
  return named.map((one) => ({
    rule: "doc",
    severity: "error",
    path,
    line: one.line,
    message: `${one.name} is exported at a door and has no doc comment`,
  }));
}

/** `export const a`, `export async function f`, `export const [a, b]` and the like; not `export { a }`. */
function declarationsOf(tokens: readonly Token[]): Declaration[] {
  return tokens.flatMap((token, start) => {
    if (token.kind !== "word" || token.text !== "export") return [];
    let at = start + 1;
    while (MODIFIERS.has(tokens[at]?.text ?? "")) at++;
    if (!KINDS.has(tokens[at]?.text ?? "")) return [];
    // `export type { a }` and `export type * from` declare nothing.
    const after = tokens[at + 1]?.text;
    if (tokens[at]?.text === "type" && (after === "{" || after === "*")) return [];
    const names = namesFrom(tokens, after === "*" ? at + 2 : at + 1);
    return names.map((name) => ({ name, line: token.line, hasDoc: token.doc !== undefined }));
  });
}

/** The name that is declared at `at`, or all of a pattern such as `[a, b]`. */
function namesFrom(tokens: readonly Token[], at: number): readonly string[] {
  if (tokens[at]?.text !== "[") return [tokens[at]?.text ?? ""];
  const end = tokens.findIndex(({ text }, index) => index > at && text === "]");
  const pattern = tokens.slice(at, end < 0 ? tokens.length : end);
  return pattern.filter(({ kind }) => kind === "word").map(({ text }) => text);
}
