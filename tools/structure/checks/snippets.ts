import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fencesOf } from "../../pages/fences.ts";
import type { Finding } from "../findings.ts";
import type { Workspace } from "../workspace.ts";

const PAGES = ["docs/**/*.md", "examples/**/*.md"];
/** Readers copy its code: every snippet has to be part of a compiled and tested file. */
const ALL_FROM_FILES = "docs/how-to/write-a-driver.md";
/** A code block that names a file (`ts file=examples/…`) is part of that file, line by line; indentation may differ. */
export function checkSnippets({ root }: Workspace): Finding[] {
  const pages = globSync(PAGES, { cwd: root, exclude: (path) => path.includes("node_modules") });
  return pages.sort().flatMap((path) => wrongIn(root, path));
}

function wrongIn(root: string, path: string): Finding[] {
  return fencesOf(readFileSync(join(root, path), "utf8")).flatMap(({ line, language, words, lines }) => {
    const file = words.find((word) => word.startsWith("file="))?.slice("file=".length);
    const message = language === "sh" ? undefined : problem(root, path, file, lines);
    return message === undefined ? [] : [{ rule: "snippet", severity: "error", path, line, message }];
  });
}

function problem(
  root: string,
  page: string,
  file: string | undefined,
  block: readonly string[],
): string | undefined {
  if (file === undefined)
    return page === ALL_FROM_FILES ? "does not name its file; write `ts file=PATH`" : undefined;
  if (!existsSync(join(root, file))) return `names the file ${file}, which does not exist`;
  const source = readFileSync(join(root, file), "utf8").split("\n");
  const wanted = outdented(block);
  const inside = source.some((_, start) => outdented(source.slice(start, start + block.length)) === wanted);
  return inside ? undefined : `differs from ${file}; copy it again`;
}

function outdented(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim() !== "").map((line) => line.search(/\S/));
  const least = Math.min(...indents);
  return lines.map((line) => line.slice(least).trimEnd()).join("\n");
}
