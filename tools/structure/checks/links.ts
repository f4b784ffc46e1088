import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Finding } from "../findings.ts";
import type { Workspace } from "../workspace.ts";

const PAGES = [
  "*.md",
  "docs/**/*.md",
  "packages/*/*.md",
  "packages/*/src/**/*.md",
  "bench/*.md",
  "bench/*/*.md",
  "examples/**/*.md",
  "testing/**/*.md",
];
const LINK = /\]\(([^)\s]+)\)/g;

/** Links between pages lead somewhere. Links to the outside are not tried. */
export function checkLinks({ root }: Workspace): Finding[] {
  const pages = globSync(PAGES, { cwd: root, exclude: (path) => path.includes("node_modules") });
  return pages.sort().flatMap((path) => brokenIn(root, path));
}

function brokenIn(root: string, path: string): Finding[] {
  const lines = readFileSync(join(root, path), "utf8").split("\n");
  return lines.flatMap((text, index) =>
    [...text.matchAll(LINK)].flatMap(([, target]): Finding[] => {
      const file = target!.replace(/#.*$/, "");
      if (file === "" || /^[a-z]+:/.test(file) || existsSync(join(root, dirname(path), file))) return [];
      const message = `links to ${target}, which does not exist`;
      return [{ rule: "link", severity: "error", path, line: index + 1, message }];
    }),
  );
}
