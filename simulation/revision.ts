import { execFileSync } from "node:child_process";

/** The running commit, with a mark if the work tree has changes. */
export function revision(): string {
  try {
    const words = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"];
    return execFileSync("git", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}
