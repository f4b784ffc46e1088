import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readWorkspace } from "../../structure/workspace.ts";

const root = join(import.meta.dirname, "../../..");
/** Of the environment that a process is given, or a name of ours wherever it stands. */
const READ = /\benv\.([A-Z][A-Z0-9_]+)|\b((?:NODEYARD|OTEL|STATSD)_[A-Z_]+)/g;
/** Of a terminal, which is handed on. */
const EXEMPT = new Set(["TERM"]);

test("docs/reference/environment.md has every variable that a package reads, and of ours no other", () => {
  const page = readFileSync(join(root, "docs/reference/environment.md"), "utf8");
  const read = new Set(
    readWorkspace(root)
      .files.filter(({ path }) => /^packages\/[^/]+\/[^/]+\/src\//.test(path))
      .flatMap(({ path }) => [...readFileSync(join(root, path), "utf8").matchAll(READ)])
      .map(([, ofEnvironment, ours]) => (ofEnvironment ?? ours)!)
      .filter((name) => !EXEMPT.has(name)),
  );
  const written = new Set([...page.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name]) => name!));
  expect([...read].filter((name) => !written.has(name))).toEqual([]);
  const ours = [...written].filter((name) => name.startsWith("NODEYARD_"));
  expect(ours.length).toBeGreaterThan(5);
  expect(ours.filter((name) => !read.has(name))).toEqual([]);
});
