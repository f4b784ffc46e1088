import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemdUnit } from "@nodeyard/sliver";
import { expect, onTestFinished, test } from "vitest";
import { requireSystemd } from "../../testing/systemd/index.ts";

const unit = (name: string) => readFileSync(join(import.meta.dirname, "../debian", name), "utf8");
const UNITS = {
  "nodeyard.service": unit("nodeyard.service"),
  "nodeyard-launcher.service": unit("nodeyard.nodeyard-launcher.service"),
  "nodeyard-builder.service": unit("nodeyard.nodeyard-builder.service"),
  "with-diskimage-builder.service":
    unit("nodeyard.nodeyard-builder.service") + unit("diskimage-builder.conf"),
  "nodeyard-sliverd.service": systemdUnit(),
};

/** Writes a unit whose program exists here, and returns its path. */
function written(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-units-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, name), text.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
  return join(folder, name);
}

const analyze = (...words: string[]) =>
  execFileSync("systemd-analyze", words, { encoding: "utf8", stdio: "pipe" });

test.skipIf(requireSystemd()).each(Object.entries(UNITS))("systemd accepts %s", (name, text) => {
  expect(analyze("verify", "--recursive-errors=no", "--man=no", written(name, text))).toBe("");
});

test.skipIf(requireSystemd()).each([
  ["nodeyard", 30],
  ["nodeyard-launcher", 30],
  ["nodeyard-builder", 30],
  // Slivers inherit what it may not do.
  ["nodeyard-sliverd", 90],
] as const)("%s.service is exposed to less than %d tenths", (name, limit) => {
  const path = written(`${name}.service`, UNITS[`${name}.service`]);
  // It exits with 1 above the threshold.
  expect(analyze("security", "--offline=true", `--threshold=${limit}`, "--no-pager", path)).toContain(
    "exposure level",
  );
});
