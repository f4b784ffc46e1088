import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { requireRoot } from "../../../testing/skipped.ts";
import { demandReleasable, notesOf } from "../whole-release.ts";

const CHANGELOG = `# Changelog

## Unreleased

- A [page](docs/a.md#part) and [a site](https://semver.org).

## 0.1.0

- First.
`;

describe("notesOf", () => {
  it.each([
    ["0.1.0", "# Nodeyard 0.1.0\n\n- First.\n"],
    ["0.2.0", "# Nodeyard 0.2.0\n\n- A page and [a site](https://semver.org).\n"],
  ])("takes the part of %s, or what is not released, without links into the sources", (version, notes) => {
    expect(notesOf(CHANGELOG, version)).toBe(notes);
  });

  it("refuses a changelog that says nothing of the version", () => {
    expect(() => notesOf("# Changelog\n\n## 0.1.0\n", "0.2.0")).toThrow(
      'CHANGELOG.md has no part "## 0.2.0"',
    );
  });
});

describe.skipIf(requireRoot() !== undefined)("demandReleasable", () => {
  it("names the commit, and refuses changes and a folder with something in it", () => {
    const root = mkdtempSync(join(tmpdir(), "nodeyard-releasable-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const git = (...words: string[]) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
    git("init", "--quiet");
    git(
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@example.org",
      "commit",
      "--quiet",
      "--allow-empty",
      "-m",
      "a",
    );
    expect(demandReleasable(root, join(root, "release"))).toBe(git("rev-parse", "HEAD"));
    mkdirSync(join(root, "release"));
    writeFileSync(join(root, "release/old"), "");
    expect(() => demandReleasable(root, join(root, "release"))).toThrow("is not empty");
    expect(() => demandReleasable(root, join(root, "other"))).toThrow("commit first");
  });
});
