import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Situation } from "./choose.ts";

/** The newest commit that passed every suite. It stands in the commit after that one. */
const LAST_WHOLE = ".ci/last-whole";

/** What git knows of the checkout in `root`. `since`: "all" for everything, a commit, or undefined for the last whole run. */
export function situationOf(root: string, since: string | undefined): Situation {
  const commits = Number(git(root, "rev-list", "--count", "HEAD"));
  if (since === "all") return { commits, changed: "all were asked for" };
  const from = since ?? lastWhole(root);
  if (from === undefined) return { commits, changed: `no run of all is recorded in ${LAST_WHOLE}` };
  const commit = tryGit(root, "rev-parse", "--verify", "--quiet", `${from}^{commit}`);
  if (commit === undefined) {
    if (since !== undefined) throw new Error(`--since ${since}: this clone has no such commit`);
    return { commits, changed: `this clone lacks ${from}, the commit of ${LAST_WHOLE}` };
  }
  return { commits, changed: { since: commit.slice(0, 8), paths: changedPaths(root, commit) } };
}

/** Records that HEAD passed everything. False: the checkout differs from its commit, so nothing can be said of that. */
export function recordWhole(root: string): boolean {
  if (git(root, "status", "--porcelain") !== "") return false;
  writeFileSync(join(root, LAST_WHOLE), `${git(root, "rev-parse", "HEAD")}\n`);
  return true;
}

function lastWhole(root: string): string | undefined {
  const path = join(root, LAST_WHOLE);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}

/** Renamed files by both names; with what is not committed yet. */
function changedPaths(root: string, commit: string): readonly string[] {
  const tracked = git(root, "diff", "--name-only", "--no-renames", commit);
  const fresh = git(root, "ls-files", "--others", "--exclude-standard");
  return `${tracked}\n${fresh}`.split("\n").filter((path) => path !== "");
}

function git(root: string, ...words: string[]): string {
  return execFileSync("git", words, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 }).trim();
}

function tryGit(root: string, ...words: string[]): string | undefined {
  try {
    return git(root, ...words);
  } catch {
    return undefined;
  }
}
