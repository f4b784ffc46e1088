import { existsSync, readFileSync } from "node:fs";

const HEADING = /^#{1,6} (.+)$/;

/** The headings of a Markdown page; undefined: the page does not exist. */
export function headingsOf(path: string): readonly string[] | undefined {
  if (!existsSync(path)) return undefined;
  let code = false;
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => {
      if (line.startsWith("```")) code = !code;
      const [, heading] = HEADING.exec(line) ?? [];
      return code || heading === undefined ? [] : [heading.trim()];
    });
}

/** The part after `#` of a link to a heading, as GitHub makes it. */
export function anchorOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
