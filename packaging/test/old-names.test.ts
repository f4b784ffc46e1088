import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

test.each([
  ["nodeyard", ["list", "a b"], ["list", "a b"]],
  ["nodepool", ["list"], ["list"]],
  ["nodepool-launcher", ["-c", "x.yaml", "-d"], ["launcher", "-c", "x.yaml", "-d"]],
  ["nodepool-builder", [], ["builder"]],
  ["nodepool-builder", ["--version"], ["--version"]],
])("the Debian package's program, called %s with %j, runs Node with %j", (name, words, passed) => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-names-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const script = readFileSync(join(import.meta.dirname, "../debian/nodeyard.sh"), "utf8");
  const [program, link] = [join(folder, "program"), join(folder, name)];
  writeFileSync(program, script.replace(/^exec \S+ \S+/m, "exec printf '%s\\n'"), { mode: 0o755 });
  symlinkSync("program", link);
  expect(execFileSync(link, words, { encoding: "utf8" }).trim().split("\n")).toEqual(passed);
});
