import { execFileSync } from "node:child_process";

/** The running commit, with a mark if the work tree has changes. */
export function revision(): string {
  try {
    return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*");
  } catch {
    return "unknown";
  }
}

/**
 * Files of the work tree that differ from a commit, by their paths below the root, and the number of commits up to now; undefined if there
 * is no such commit.
 */
export function changesSince(
  commit: string,
): { readonly files: ReadonlySet<string>; readonly commits: number } | undefined {
  try {
    const names = git("diff", "--name-only", "--relative", "-z", commit, "--");
    return { files: new Set(names.split("\0")), commits: Number(git("rev-list", "--count", "HEAD")) };
  } catch {
    return undefined;
  }
}

function git(...words: readonly string[]): string {
  return execFileSync("git", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}
