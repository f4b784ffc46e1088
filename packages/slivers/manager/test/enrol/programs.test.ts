import { createHash } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { carryOut } from "../../src/enrol/edge/carry-out.ts";

let root: string;
let from: string;
let to: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nodeyard-programs-"));
  from = join(root, "bundle");
  to = join(root, "1-abc");
  mkdirSync(from);
  const programs = { "sliverd.mjs": "daemon", sliverd: "#!/bin/sh" };
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(from, name), text);
  writeFileSync(join(from, "node"), "runtime", { mode: 0o600 });
  const digests = Object.entries(programs).map(([name, text]) => [
    name,
    createHash("sha256").update(text).digest("hex"),
  ]);
  writeFileSync(join(from, "bundle.json"), JSON.stringify({ files: Object.fromEntries(digests) }));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const put = () => carryOut({ kind: "programs", from, path: to }, new AbortController().signal);
const mode = (name: string) => statSync(join(to, name)).mode & 0o777;

describe("the programs of a sliver host", () => {
  test("are those that the list names, the list itself and the runtime, readable by all", async () => {
    writeFileSync(join(from, "settings.json"), "nobody asked for this");
    mkdirSync(join(from, "folder"));
    await put();
    expect(readdirSync(to).sort()).toEqual(["bundle.json", "node", "sliverd", "sliverd.mjs"]);
    expect(["bundle.json", "node", "sliverd", "sliverd.mjs"].map(mode)).toEqual([0o644, 0o755, 0o755, 0o755]);
    expect(readdirSync(root).sort()).toEqual(["1-abc", "bundle"]);
  });

  test("that are damaged leave nothing", async () => {
    writeFileSync(join(from, "sliverd.mjs"), "another daemon");
    await expect(put()).rejects.toThrow("sliverd.mjs of the bundle is damaged; copy it again");
    expect(readdirSync(root)).toEqual(["bundle"]);
  });

  test("of which one is missing leave nothing", async () => {
    rmSync(join(from, "sliverd"));
    await expect(put()).rejects.toThrow(/ENOENT/);
    expect(readdirSync(root)).toEqual(["bundle"]);
  });

  test("take the place of what a copy that was cut off left", async () => {
    mkdirSync(`${to}.new`);
    writeFileSync(join(`${to}.new`, "sliverd.mjs"), "hal");
    writeFileSync(join(`${to}.new`, "older.mjs"), "");
    chmodSync(join(`${to}.new`, "older.mjs"), 0o400);
    await put();
    expect(readdirSync(root).sort()).toEqual(["1-abc", "bundle"]);
    expect(readFileSync(join(to, "sliverd.mjs"), "utf8")).toBe("daemon");
    expect(readdirSync(to)).not.toContain("older.mjs");
  });
});
