import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Changed, Situation } from "./choose.ts";

/** For each suite the newest commit that passed the whole of it, in a later commit: lines of its name and that commit. */
const LAST_WHOLE = ".ci/last-whole";

/** What git knows of the checkout in `root`. `since`: "all" for everything, a commit, or undefined for what the suites passed last. */
export function situationOf(root: string, since: string | undefined): Situation {
  const commits = Number(git(root, "rev-list", "--count", "HEAD"));
  if (since === "all") return { commits, changedSince: () => "all were asked for" };
  if (since !== undefined) {
    const changed = changedSince(root, since);
    if (changed === undefined) throw new Error(`--since ${since}: this clone has no such commit`);
    return { commits, changedSince: () => changed };
  }
  const passes = readPasses(root);
  const known = new Map([...new Set(passes.values())].map((commit) => [commit, changedSince(root, commit)]));
  return {
    commits,
    changedSince: (suite) => {
      const passed = passes.get(suite);
      if (passed === undefined) return `${LAST_WHOLE} has no run of it`;
      return known.get(passed) ?? `this clone lacks ${passed}, where it passed by ${LAST_WHOLE}`;
    },
  };
}

/** Records that HEAD passed these suites. False: the checkout differs from its commit, so nothing can be said of that. */
export function recordPasses(root: string, suites: readonly string[]): boolean {
  if (git(root, "status", "--porcelain") !== "") return false;
  const head = git(root, "rev-parse", "HEAD");
  const passes = new Map([...readPasses(root), ...suites.map((suite) => [suite, head] as const)]);
  const lines = [...passes].sort().map(([suite, commit]) => `${suite} ${commit}\n`);
  writeFileSync(join(root, LAST_WHOLE), lines.join(""));
  return true;
}

function readPasses(root: string): ReadonlyMap<string, string> {
  const path = join(root, LAST_WHOLE);
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  return new Map([...text.matchAll(/^(\S+) (\S+)$/gm)].map(([, suite, commit]) => [suite!, commit!]));
}

/** Undefined: there is no such commit. */
function changedSince(root: string, since: string): Changed | undefined {
  const commit = tryGit(root, "rev-parse", "--verify", "--quiet", `${since}^{commit}`);
  return commit === undefined ? undefined : { since: commit.slice(0, 8), paths: changedPaths(root, commit) };
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
