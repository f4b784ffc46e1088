import { spawnSync } from "node:child_process";
import { skip } from "../skipped.ts";
import { missingJars } from "./jvm.ts";
import { findPython } from "./kazoo.ts";

const TOOLS = [
  "java",
  "openssl",
  "/usr/share/java/zookeeper.jar",
  "/usr/lib/python3/dist-packages/kazoo",
] as const;

let answer: { readonly missing: string | undefined } | undefined;

/** For `describe.skipIf(requireZooKeeper())`: why no real ZooKeeper can be started and looked at by kazoo, or undefined. */
export function requireZooKeeper(): string | undefined {
  answer ??= { missing: look() };
  const { missing } = answer;
  return missing === undefined ? undefined : skip(`ZooKeeper tests need ${missing}`, ...TOOLS);
}

function look(): string | undefined {
  const missing: string[] = [];
  if (spawnSync("java", ["-version"]).status !== 0) missing.push("a Java runtime");
  if (spawnSync("openssl", ["version"]).status !== 0) missing.push("openssl");
  if (findPython() === undefined) missing.push("a python3 that can import kazoo");
  missing.push(...missingJars());
  return missing.length === 0 ? undefined : missing.join(", ");
}
