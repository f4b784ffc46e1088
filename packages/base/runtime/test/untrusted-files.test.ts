import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { tail, whole } from "../src/index.ts";

describe("files that strangers may have replaced", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-untrusted-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const at = (name: string) => join(folder, name);
  writeFileSync(at("file"), "12345678");
  symlinkSync("file", at("link"));
  mkdirSync(at("folder"));
  execFileSync("mkfifo", [at("fifo")]);

  test("a plain file is read", async () => {
    expect(await whole(at("file"), 8)).toBe("12345678");
    expect(await tail(at("file"), 3)).toBe("678");
  });

  test.each(["link", "folder", "fifo", "none"])("a %s is not, and nothing waits for it", async (name) => {
    expect(await whole(at(name), 8)).toBeUndefined();
    expect(await tail(at(name), 8)).toBeUndefined();
  });

  test("a longer one than expected is not read as a whole", async () => {
    expect(await whole(at("file"), 7)).toBeUndefined();
  });
});
