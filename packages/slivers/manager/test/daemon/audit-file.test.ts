import {
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AuditEntry } from "../../src/api/dispatch.ts";
import { auditFile } from "../../src/daemon/edge/audit-file.ts";

const FULL = 16 * 1024 * 1024;

describe("an audit log that is full", () => {
  let folder: string;
  let path: string;
  let said: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-audit-"));
    path = join(folder, "audit.log");
    said = [];
    writeFileSync(path, "");
    // A hole: it takes no room.
    truncateSync(path, FULL);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const open = () => auditFile(path, (line) => void said.push(line));
  const entry = (target: string) => ({ target }) as AuditEntry;
  const targets = (file: string) =>
    readFileSync(file, "utf8")
      .replaceAll("\0", "")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).target);

  test("becomes another file, and a new one begins", () => {
    const { audit, close } = open();
    audit(entry("ada"));
    audit(entry("bob"));
    close();
    expect(targets(path)).toEqual(["ada", "bob"]);
    expect(readFileSync(`${path}.1`)).toHaveLength(FULL);
    expect(said).toEqual([]);
  });

  test("cannot be replaced: it keeps growing, the log says so once, and no other file is closed", () => {
    const { audit, close } = open();
    mkdirSync(`${path}.1`);
    audit(entry("ada"));
    const theirs = openSync(join(folder, "theirs"), "a");
    audit(entry("bob"));
    expect(fstatSync(theirs).isFile()).toBe(true);
    closeSync(theirs);
    expect(targets(path)).toEqual(["ada", "bob"]);
    expect(said).toEqual([
      expect.stringMatching(
        /audit.log is full and keeps growing, because a new one cannot be opened: EISDIR/,
      ),
    ]);

    rmdirSync(`${path}.1`);
    audit(entry("cyd"));
    expect(targets(path)).toEqual(["cyd"]);
    expect(targets(`${path}.1`)).toEqual(["ada", "bob"]);
    close();
  });

  test("was removed by another program: a new one begins", () => {
    const { audit, close } = open();
    renameSync(path, join(folder, "archive"));
    audit(entry("ada"));
    expect(targets(path)).toEqual(["ada"]);
    expect(said).toEqual([]);
    close();
  });

  test("is closed once, and takes nothing more: its number may be another file's", () => {
    const { audit, close } = open();
    close();
    const theirs = openSync(join(folder, "theirs"), "a");
    close();
    expect(() => audit(entry("ada"))).toThrow(/is closed/);
    expect(fstatSync(theirs).size).toBe(0);
    closeSync(theirs);
  });
});
