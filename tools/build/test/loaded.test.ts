import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeCode } from "../code.ts";
import { partsOf, readPackages } from "../packages.ts";
import { rewriteRequires } from "../specifiers.ts";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const PACKAGE = join(REPOSITORY, "packages/nodeyard/cli");
const HOOK = join(import.meta.dirname, "print-loaded.mjs");
const PROGRAM = "src/bin/nodeyard.cjs";

const all = readPackages(REPOSITORY);
const program = all.find(({ manifest }) => manifest.name === "nodeyard")!;
const parts = partsOf(program, all);

let built: string;
beforeAll(async () => {
  built = mkdtempSync(join(tmpdir(), "nodeyard-loaded-"));
  await writeCode(program, built, parts);
  mkdirSync(join(built, "src/bin"), { recursive: true });
  for (const file of ["package.json", PROGRAM])
    writeFileSync(join(built, file), rewriteRequires(readFileSync(join(PACKAGE, file), "utf8")));
  symlinkSync(join(REPOSITORY, "node_modules"), join(built, "node_modules"));
});
afterAll(() => rmSync(built, { recursive: true, force: true }));

/** Packages that `nodeyard WORDS` loads, and the number of the program's own files; `folder`: the sources or the build. */
function loaded(folder: string, ...words: readonly string[]) {
  const list = join(mkdtempSync(join(built, "run-")), "loaded");
  const env = { ...process.env, LOADED: list, NODE_DISABLE_COMPILE_CACHE: "1" };
  const args = ["--import", HOOK, join(folder, PROGRAM), "--state", join(built, "none"), ...words];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
  const names = readFileSync(list, "utf8").trim().split("\n").map(packageOf);
  const packages = [...new Set(names)].filter((name) => name !== "nodeyard").sort();
  return { said: stdout + stderr, packages, own: names.filter((name) => name === "nodeyard").length };
}

function packageOf(url: string): string {
  const [, inside] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  if (inside !== undefined) return inside;
  const ours = all.find(({ path }) => url.includes(`${path}/`));
  return ours === undefined || parts.includes(ours) ? "nodeyard" : ours.manifest.name;
}

describe("a command loads what it needs and nothing else", () => {
  it("--version: the program's own entry, the command line, and no schema, log, metrics or server", () => {
    const { said, packages, own } = loaded(built, "--version");
    expect(said).toMatch(/^Nodeyard version: /);
    expect(packages).toEqual(["@nodeyard/runtime", "commander"]);
    // The file that checks Node's version, package.json and the entry.
    expect(own).toBe(3);
    expect(loaded(PACKAGE, "--version").packages).toEqual(packages);
  });

  it("list: besides that the tree's client and records", () => {
    const { said, packages } = loaded(built, "list");
    expect(said).toContain("no Nodeyard runs on the state folder");
    expect(packages).toEqual([
      "@nodeyard/model",
      "@nodeyard/runtime",
      "@nodeyard/tree",
      "@nodeyard/zookeeper",
      "commander",
    ]);
  });

  it("with a configuration also the code that reads it", () => {
    const { packages } = loaded(built, "-c", join(REPOSITORY, "examples/fake.yaml"), "list");
    expect(packages).toEqual(expect.arrayContaining(["@nodeyard/driver", "yaml", "zod"]));
    expect(packages).not.toContain("fastify");
  });
});
