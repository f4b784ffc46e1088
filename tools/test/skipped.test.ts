import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { demandTools, NOTES, requireTools, skip, skippedText } from "../../testing/skipped.ts";

/** A run of tests that is no run of CI, and whose PATH has no programs. */
function emptyMachine(): () => string {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-skipped-"));
  vi.stubEnv("CI", undefined);
  vi.stubEnv("PATH", folder);
  vi.stubEnv(NOTES, join(folder, "notes"));
  const stderr = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    stderr.mockRestore();
    rmSync(folder, { recursive: true });
  });
  return () => skippedText(readFileSync(join(folder, "notes"), "utf8"));
}

test("what is skipped is said at the end, once each, with one command that installs all that is missing", () => {
  const end = emptyMachine();
  expect(requireTools("tests of pages", "fish", "jq", "/bin/sh")).toMatch(
    /^tests of pages need fish, jq\. Run: .*fish jq$/,
  );
  requireTools("tests of pages", "fish", "jq", "/bin/sh");
  requireTools("tests of zkCli.sh", "java");
  skip("tests of history need git fetch --unshallow");
  const sudo = process.getuid?.() === 0 ? "" : "sudo ";
  expect(end()).toBe(
    "Skipped on this machine:\n  tests of history need git fetch --unshallow\n  tests of pages need fish, jq\n  tests of zkCli.sh need java\n" +
      `To run them: ${sudo}apt-get install --no-install-recommends default-jre-headless fish jq\n`,
  );
});

test("nothing is said where nothing is skipped", () => {
  expect(requireTools("tests of files", "/bin/sh")).toBeUndefined();
  expect(skippedText("")).toBe("");
});

test("CI fails instead", () => {
  emptyMachine();
  vi.stubEnv("CI", "true");
  expect(() => requireTools("tests of fish", "fish")).toThrow("tests of fish need fish. Run:");
});

test("a tool that no package is known for is a mistake of the test", () => {
  emptyMachine();
  expect(() => requireTools("tests", "no-such-tool")).toThrow("testing/packages.txt does not say");
});

test("work that cannot go on without a tool ends at once, with the command that installs it", () => {
  emptyMachine();
  const work = () => demandTools("--deb", "dpkg-buildpackage", "dh", "/bin/sh");
  expect(work).toThrow(/^--deb needs dpkg-buildpackage, dh\. Run: .* dpkg-dev debhelper$/);
  expect(() => demandTools("--deb", "/bin/sh")).not.toThrow();
});
