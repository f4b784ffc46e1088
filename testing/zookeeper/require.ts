import { spawnSync } from "node:child_process";
import { missingJars } from "./jvm.ts";
import { findPython } from "./kazoo.ts";

let answer: { readonly missing: string | undefined } | undefined;

/**
 * What is missing on this machine, or undefined. Meant for `describe.skipIf(requireZooKeeper())`: the reason is
 * written to stderr, and in CI (`CI` is set) a missing tool is an error instead, so that no test is lost silently.
 */
export function requireZooKeeper(): string | undefined {
  answer ??= { missing: look() };
  const { missing } = answer;
  if (missing === undefined) return undefined;
  const line = `ZooKeeper tests need ${missing}. Run: apt-get install zookeeper default-jre-headless python3-kazoo openssl`;
  if (process.env.CI) throw new Error(line);
  process.stderr.write(`SKIPPED: ${line}\n`);
  return line;
}

function look(): string | undefined {
  const missing: string[] = [];
  if (spawnSync("java", ["-version"]).status !== 0) missing.push("a Java runtime");
  if (spawnSync("openssl", ["version"]).status !== 0) missing.push("openssl");
  if (findPython() === undefined) missing.push("a python3 that can import kazoo");
  missing.push(...missingJars());
  return missing.length === 0 ? undefined : missing.join(", ");
}
