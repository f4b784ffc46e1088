import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding } from "../findings.ts";
import { headingsOf } from "../headings.ts";
import type { Workspace } from "../workspace.ts";

/** A page that a comment cites: the path from the root and, in quotes, a heading. Either may begin a new line. */
const CITED = /(?<![\w/.-])(docs\/[\w./-]+\.md)(?:,\s+"([^"]+)")?/g;
const COMMENT = /(?:^\s*\*|(?:^|\s)\/\*\*?|(?:^|\s)\/\/)(?:\s|$)(.*)$/;

/** Cited pages and headings exist: a source that nobody can open is none. */
export function checkCitations({ root, files }: Workspace): Finding[] {
  const headings = new Map<string, readonly string[] | undefined>();
  const known = (page: string) => {
    if (!headings.has(page)) headings.set(page, headingsOf(join(root, page)));
    return headings.get(page);
  };
  return files.flatMap(({ path }) => {
    const text = commentsOf(readFileSync(join(root, path), "utf8"));
    return [...text.matchAll(CITED)].flatMap(({ 1: page, 2: heading, index }): Finding[] => {
      const problem = missing(known(page!), heading?.replace(/\s+/g, " "));
      if (problem === undefined) return [];
      const line = text.slice(0, index).split("\n").length;
      return [{ rule: "citation", severity: "error", path, line, message: `cites ${page}${problem}` }];
    });
  });
}

function missing(headings: readonly string[] | undefined, heading: string | undefined): string | undefined {
  if (headings === undefined) return ", which does not exist";
  if (heading === undefined || headings.includes(heading)) return undefined;
  return `, which has no heading "${heading}"`;
}

/** The comments of a file, each on its line. */
function commentsOf(text: string): string {
  return text
    .split("\n")
    .map((line) => COMMENT.exec(line)?.[1] ?? "")
    .join("\n");
}
