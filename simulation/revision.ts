import { execFileSync } from "node:child_process";

/** The commit that runs, with a mark when there is more than it. */
export function revision(): string {
  try {
    const words = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"];
    return execFileSync("git", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}
