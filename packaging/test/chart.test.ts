import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import { expect, onTestFinished, test } from "vitest";
import { CHART, rendered as render, requireHelm, runHelm } from "../../testing/kubernetes/helm.ts";
import { ROLES } from "../../testing/kubernetes/roles.ts";

const root = join(import.meta.dirname, "../..");
const skip = requireHelm() !== undefined;

/** What values can ask for, all at once. */
const EVERYTHING = {
  config: "zookeeper-servers: [{host: zk}]",
  imagePullSecrets: [{ name: "registry" }],
  files: { zookeeper: { secret: { secretName: "zookeeper-client" } } },
  webappTokenSecret: "webapp",
  env: [{ name: "STATSD_HOST", value: "statsd" }],
  launcher: { args: ["-d"], pod: { nodeSelector: { disk: "ssd" } } },
  builder: { privileged: true, storageClass: "fast", pod: { priorityClassName: "low" } },
  rbac: { create: true },
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
const rendered = (values: unknown, namespace?: string) => render<Manifest>(values, namespace);

interface Role {
  readonly metadata: { readonly name: string };
  readonly rules: unknown;
}

/** What the types of Kubernetes' API, made from its OpenAPI, do not accept: unknown and missing fields, values of another type. */
function refused(manifests: readonly Manifest[]): string {
  const folder = mkdtempSync(join(root, ".tmp/chart-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const lines = manifests.map((manifest, at) => {
    const group = manifest.apiVersion.includes("/")
      ? manifest.apiVersion.replace(/[.].*k8s[.]io/, "")
      : "core/v1";
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
  expect(runHelm(["lint", "--strict"], EVERYTHING)).toContain("0 chart(s) failed");
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

test.skipIf(skip)(
  "launchers have a token only where they are to have one, with the rights of the page",
  () => {
    const of = (rbac: object) => {
      const all = rendered({ config: "labels: []", rbac }, "ci");
      const pods = all.filter(({ kind }) => kind === "StatefulSet").map(({ spec }) => spec.template.spec!);
      const roles = all.filter(({ kind }) => kind === "ClusterRole") as unknown as readonly Role[];
      return { all, pods, roles };
    };
    expect(of({}).pods.map(({ automountServiceAccountToken: token }) => token)).toEqual([false, false]);
    expect(of({}).all.filter(({ kind }) => /Role|ServiceAccount/.test(kind))).toEqual([]);

    const { all, pods, roles } = of({ create: true });
    const accounts = pods.map(({ serviceAccountName = null, automountServiceAccountToken: token }) => [
      serviceAccountName,
      token,
    ]);
    expect(accounts.sort()).toEqual([
      [null, false],
      ["yard-launcher", true],
    ]);
    const rules = (some: readonly Role[]) =>
      Object.fromEntries(
        some.map(({ metadata: { name }, rules }) => [name.replace(/^ci-yard/, "nodeyard"), rules]),
      );
    expect(rules(roles)).toEqual(rules(ROLES as readonly Role[]));
    expect(all.find(({ kind }) => kind === "ClusterRoleBinding")).toMatchObject({
      roleRef: { kind: "ClusterRole", name: "ci-yard-launcher" },
      subjects: [{ kind: "ServiceAccount", name: "yard-launcher", namespace: "ci" }],
    });
    expect(of({ create: true, jobRoles: false }).roles.map(({ metadata }) => metadata.name)).toEqual([
      "ci-yard-launcher",
    ]);
  },
);

test.skipIf(skip)("the state folder is the process's own, in a volume that belongs to root", () => {
  for (const { spec } of rendered({ config: "labels: []" }).filter(({ kind }) => kind === "StatefulSet")) {
    const { env, volumeMounts } = spec.template.spec!.containers[0]!;
    const { mountPath } = volumeMounts!.find(({ name }) => name === "state")!;
    expect(env!.find(({ name }) => name === "NODEYARD_STATE")!.value).toBe(`${mountPath}/state`);
  }
});

test.skipIf(skip)("a typo in the values and a missing configuration are refused", () => {
  expect(() => rendered({ ...SMALLEST, launcher: { replica: 3 } })).toThrow(
    "additional properties 'replica' not allowed",
  );
  expect(() => rendered({})).toThrow("config or existingConfig must be set");
});

test("the chart has the version of the program", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const text = readFileSync(join(CHART, "Chart.yaml"), "utf8");
  expect(text).toContain(`\nversion: ${version}\nappVersion: ${version}\n`);
});
