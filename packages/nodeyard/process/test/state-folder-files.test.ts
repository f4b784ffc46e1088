import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeStateFolder } from "../src/index.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "nodeyard-folder-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const mode = (path: string) => statSync(path).mode & 0o777;

function folder(name: string, ...files: readonly string[]): string {
  const path = join(base, name);
  mkdirSync(path);
  chmodSync(path, 0o755);
  for (const file of files) writeFileSync(join(path, file), "");
  return path;
}

test("is made with all that leads to it, for its owner alone", () => {
  const path = join(base, "a", "b", "state");
  makeStateFolder(path);
  expect([mode(path), mode(join(base, "a"))]).toEqual([0o700, 0o700]);
  makeStateFolder(path);
});

test("is closed to others when it is empty or Nodeyard's own", () => {
  for (const path of [folder("empty"), folder("own", "tree.sqlite", "notes")]) {
    makeStateFolder(path);
    expect(mode(path)).toBe(0o700);
  }
});

test("a folder of other things is refused, and keeps its mode", () => {
  const path = folder("home", "letter.txt");
  expect(() => makeStateFolder(path)).toThrow(
    `cannot use the state folder ${path} (others may enter it, and it holds files that are not Nodeyard's); name another with --state DIR`,
  );
  expect(mode(path)).toBe(0o755);
});

test("a file, and a place that can hold no folder, are refused at once", () => {
  writeFileSync(join(base, "file"), "");
  expect(() => makeStateFolder(join(base, "file"))).toThrow("cannot use the state folder");
  expect(() => makeStateFolder(join(base, "file", "state"))).toThrow("ENOTDIR");
  if (existsSync("/proc/self")) expect(() => makeStateFolder("/proc/nodeyard")).toThrow("ENOENT");
});
