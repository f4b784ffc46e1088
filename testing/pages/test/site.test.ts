import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBrowser, requireChromium } from "../../browser/index.ts";
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

/** By the link to the next one at the end of each page. */
function pagesInOrder(first: string): readonly string[] {
  const pages: string[] = [];
  for (let page: string | undefined = first; page !== undefined && !pages.includes(page); ) {
    pages.push(page);
    const next: string | undefined = /<a href="([^"]+)" title="Next document"/.exec(
      readFileSync(page, "utf8"),
    )?.[1];
    page = next === undefined ? undefined : join(dirname(page), next);
  }
  return pages;
}

describe.skipIf(missing() !== undefined)("the site", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-site-"));
  beforeAll(() => {
    // Warnings are errors: a link that Sphinx does not resolve is one.
    execFileSync("npm", ["run", "--silent", "site", "--", folder], { cwd: ROOT, stdio: "pipe" });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const wanted = globSync("docs/**/*.md", { cwd: ROOT }).map((page) =>
    join(folder, page.replace(/md$/, "html")),
  );

  it("is made of every page, and its links and all that it loads are files of its own", () => {
    const pages = globSync("**/*.html", { cwd: folder }).map((page) => join(folder, page));
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
  });

  it("leads from its first page through all others, tutorials first, as the READMEs list them", () => {
    const order = pagesInOrder(join(folder, "docs/README.html"));
    expect(order.toSorted()).toEqual(wanted.toSorted());
    const first = ["README", "tutorial/README", "tutorial/first-nodes", "tutorial/lab"];
    expect(order.slice(0, 4)).toEqual(first.map((page) => join(folder, `docs/${page}.html`)));
  });

  it.skipIf(requireChromium() !== undefined)("copies what one types, and not what is printed", async () => {
    await using browser = await openBrowser();
    const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
    const page = await context.newPage();
    const copied = async (path: string, text: string) => {
      await page.goto(pathToFileURL(join(folder, path)).href);
      await page.locator(".highlight-sh, .highlight-console", { hasText: text }).locator("button").click();
      await page.getByRole("button", { name: "copied" }).waitFor();
      return page.evaluate<string>("navigator.clipboard.readText()");
    };
    expect(await copied("docs/tutorial/first-nodes.html", "nodeyard request fake-small:2 --wait")).toBe(
      "nodeyard request fake-small:2 --wait\n",
    );
    expect(await copied("docs/how-to/why-it-waits.html", "nodeyard explain 62d758e7c2ed")).toBe(
      "nodeyard explain 62d758e7c2ed\n",
    );
  });
});
