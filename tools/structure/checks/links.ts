import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Finding } from "../findings.ts";
import { anchorOf, headingsOf } from "../headings.ts";
import type { Workspace } from "../workspace.ts";

/** Every page of the repository, whatever folder it is in. */
const PAGES = "**/*.md";
const TESTS = "**/*.test.ts";
const NOT_OURS = /(?:^|\/)(?:node_modules|dist|coverage|\.git)$/;
const LINK = /\]\(([^)\s]+)\)/g;
/** A path of this repository in running text, from the root; what a build makes (`dist`) need not be there. */
const NAMED = /`((?:bench|docs|elements|examples|packages|packaging|simulation|testing|tools)\/[\w./-]+)`/g;

/** A test file, from any folder above it on, and the titles in quotes that follow it. */
const CITED_TEST = /`([\w./-]+\.test\.ts)`((?:,? "[^"]+")*)/g;

/** A link of one name, or of a class and its member, to a source: [`Loop.push`](loop.ts). */
const DECLARED = /\[`(#?\w+(?:\.#?\w+)*)`\]\(([^)\s#]+\.ts)\)/g;

/**
 * Links between pages lead to pages and headings that exist; paths in pages exist, test files have tests of the titles that are cited, and a
 * source declares what a link to it names. External links are not tried.
 */
export function checkLinks({ root }: Workspace): Finding[] {
  const pages = globSync(PAGES, { cwd: root, exclude: (path) => NOT_OURS.test(path) });
  const tests = globSync(TESTS, { cwd: root, exclude: (path) => NOT_OURS.test(path) });
  return pages.sort().flatMap((path) => [...brokenIn(root, path, tests), ...unlisted(root, path)]);
}

/** Each page of a folder of docs/ is in the list of that folder's README. */
function unlisted(root: string, path: string): Finding[] {
  const index = join(root, dirname(path), "README.md");
  const isListed =
    !/^docs\/[^/]+\//.test(path) ||
    path.endsWith("/README.md") ||
    !existsSync(index) ||
    readFileSync(index, "utf8").includes(`](${basename(path)}`);
  const message = "is not in the README of its folder";
  return isListed ? [] : [{ rule: "link", severity: "error", path, line: 1, message }];
}

function brokenIn(root: string, path: string, tests: readonly string[]): Finding[] {
  const lines = readFileSync(join(root, path), "utf8").split("\n");
  return lines.flatMap((text, index) => {
    const links = [...text.matchAll(LINK)].flatMap(([, target]) => {
      const problem = problemOf(root, path, target!);
      return problem === undefined ? [] : [`links to ${target}, which ${problem}`];
    });
    const named = [...text.matchAll(NAMED)].flatMap(([, file]) =>
      existsSync(join(root, file!)) || file!.includes("/dist/")
        ? []
        : [`names ${file}, which does not exist`],
    );
    const lacking = [...text.matchAll(DECLARED)].flatMap(([, name, target]) => {
      const file = join(root, dirname(path), target!);
      return isFileName(name!) || !existsSync(file) || declares(readFileSync(file, "utf8"), name!)
        ? []
        : [`links ${name} to ${target}, which does not declare it`];
    });
    const untested = [...text.matchAll(CITED_TEST)].flatMap(([, file, titles]) => {
      const found = tests.filter((test) => `/${test}`.endsWith(`/${file}`));
      if (found.length === 0) return [`cites ${file}, which does not exist`];
      const sources = found.map((test) => readFileSync(join(root, test), "utf8"));
      return [...titles!.matchAll(/"([^"]+)"/g)].flatMap(([, title]) =>
        sources.some((source) => source.includes(title!))
          ? []
          : [`cites ${file}, which has no test "${title}"`],
      );
    });
    return [...links, ...named, ...lacking, ...untested].map(
      (message): Finding => ({ rule: "link", severity: "error", path, line: index + 1, message }),
    );
  });
}

function problemOf(root: string, path: string, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [file = "", anchor] = target.split("#");
  const page = file === "" ? join(root, path) : join(root, dirname(path), file);
  if (!existsSync(page)) return "does not exist";
  if (anchor === undefined || !page.endsWith(".md")) return undefined;
  return headingsOf(page)!.some((heading) => anchorOf(heading) === anchor)
    ? undefined
    : "has no such heading";
}

function isFileName(name: string): boolean {
  return name.endsWith(".ts");
}

/** Whether a source declares a name of the top level, or `Class.member`. */
function declares(source: string, name: string): boolean {
  const [top = "", member] = name.split(".");
  const isThere = (pattern: string) => new RegExp(pattern, "m").test(source);
  return (
    isThere(`^(?:export )?(?:async |abstract )?(?:function\\*?|class|const|interface|type) ${top}\\b`) &&
    (member === undefined ||
      isThere(`^  (?:(?:async|static|get|protected|override|readonly) )*\\*?${member}(?:<[^(]*>)?[(:=? ]`))
  );
}
