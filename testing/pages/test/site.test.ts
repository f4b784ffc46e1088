import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { skip } from "../../skipped.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

function missing(): string | undefined {
  const looked = spawnSync("/usr/bin/python3", ["-c", "import sphinx, myst_parser"]);
  if (looked.status === 0) return undefined;
  return skip("tests of the site need Sphinx and MyST", "/usr/lib/python3/dist-packages/myst_parser");
}

const ids = new Map<string, ReadonlySet<string>>();

function idsOf(page: string): ReadonlySet<string> {
  const known =
    ids.get(page) ??
    new Set([...readFileSync(page, "utf8").matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id!));
  ids.set(page, known);
  return known;
}

/** Why a link of a page leads nowhere on a file system; undefined: it leads somewhere. */
function broken(page: string, link: string): string | undefined {
  const [path = "", id = ""] = link.replaceAll("&amp;", "&").split("#").map(decodeURIComponent);
  const target = path === "" ? page : join(dirname(page), path.split("?")[0]!);
  if (!existsSync(target) || !statSync(target).isFile()) return "no such file";
  return id === "" || idsOf(target).has(id) ? undefined : "no such place in the file";
}

test.skipIf(missing() !== undefined)(
  "the site is made of every page, and its links and all that it loads are files of its own",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-site-"));
    try {
      // Warnings are errors: a link that Sphinx does not resolve is one.
      execFileSync("npm", ["run", "--silent", "site", "--", folder], { cwd: ROOT, stdio: "pipe" });
      const pages = globSync("**/*.html", { cwd: folder }).map((page) => join(folder, page));
      const wanted = globSync("docs/**/*.md", { cwd: ROOT }).map((page) =>
        join(folder, page.replace(/md$/, "html")),
      );
      expect(pages).toEqual(expect.arrayContaining(wanted));
      const wrong = pages.flatMap((page) =>
        [...readFileSync(page, "utf8").matchAll(/<(\w+) [^>]*?\b(?:href|src)="([^"]*)"/g)].flatMap(
          ([, tag, link]) => {
            const outside = /^(?:[a-z]+:|\/)/.test(link!);
            const why = outside ? (tag === "a" ? undefined : "is loaded from outside") : broken(page, link!);
            return why === undefined ? [] : [`${relative(folder, page)}: ${link}: ${why}`];
          },
        ),
      );
      const styles = globSync("**/*.css", { cwd: folder }).filter((style) =>
        /url\(["']?(?:https?:)?\/\//.test(readFileSync(join(folder, style), "utf8")),
      );
      expect([...wrong, ...styles]).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
