import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Clock,
  type CreateOrder,
  DriverError,
  type Machine,
  type Provider,
  runSteps,
  type Tag,
} from "@nodeyard/driver";
import type { KubeProviderConfig } from "@nodeyard/driver-kubernetes";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, afterEach, beforeAll, onTestFinished } from "vitest";
import { type Openshift, startOpenshift } from "../openshift/index.ts";
import { compile, contextOf, driverOn, type Kind, type Logged } from "./rig.ts";
import { ROLES } from "./roles.ts";
import { KubernetesSite, type User } from "./site.ts";

export const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
export const ID = "0000000042";
export const NS = `main-${ID}`;

export let site: KubernetesSite;
export let openshift: Openshift;
export let lines: Logged[] = [];
const opened: Provider[] = [];

/** One control plane for all tests of a file, emptied after each. */
export function useCluster(): void {
  beforeAll(async () => {
    site = await KubernetesSite.start({ hasty: true });
    openshift = await startOpenshift(site);
  });
  afterAll(async () => {
    await openshift?.stop();
    await site?.stop();
  });
  afterEach(async () => {
    for (const provider of opened.splice(0)) await provider.close();
    lines = [];
    await site.empty();
  });
}

export type Label = Readonly<Record<string, unknown>>;
export const POD: Label = { name: "small", type: "pod", image: "i" };
export const SPACE: Label = { name: "space", type: "namespace" };
export const SHARED: Label = { name: "small", image: "i" };

/** A provider with one label, and that label's order. */
export async function open(
  kind: Kind,
  label: Label,
  more: {
    provider?: object;
    pool?: object;
    /** Values that a file could not have. */
    own?: Partial<KubeProviderConfig["own"]>;
    kubeconfig?: string;
    clock?: Clock;
  } = {},
  user: User = "admin",
) {
  const compiled = compile(kind, [label], more);
  const config = { ...compiled, own: { ...compiled.own, ...more.own } };
  const { kubeconfig = kind === "openshift" ? openshift.kubeconfig(user) : site.kubeconfig(user), clock } =
    more;
  const provider = await driverOn(kind, kubeconfig).open(config, contextOf(INSTALLATION, lines, clock));
  opened.push(provider);
  const pool = config.pools[0]!;
  const one = pool.labels.get(String(label.name))!;
  const order = (nodeId = ID): CreateOrder => ({
    tag: tagOf(nodeId),
    hostname: `np${nodeId}`,
    pool,
    label: one,
    az: null,
    imageExternalId: null,
    attempt: 1,
    request: {
      id: "200-1",
      labels: [one.name],
      requestor: "zuul",
      requestorData: null,
      relativePriority: 0,
      eventId: null,
      createdTime: null,
      tenantName: "t1",
    },
  });
  const create = (nodeId = ID) => run((context) => provider.create(order(nodeId), context));
  const remove = (nodeId = ID) => run((context) => provider.remove(tagOf(nodeId), context));
  return { provider, config, label: one, create, remove };
}

export const tagOf = (nodeId: string): Tag => ({
  installation: INSTALLATION,
  provider: "kube",
  pool: "main",
  nodeId,
});
export const signal: AbortSignal = new AbortController().signal;

export function run<T>(start: Parameters<typeof runSteps<T>>[0]): Promise<T> {
  return runSteps(start, { clock: systemClock, signal, externalId: null, save: async () => {} });
}

export async function failure(work: Promise<unknown>): Promise<DriverError> {
  const error = await work.then(
    () => new Error("it should have failed"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof DriverError)) throw error;
  return error;
}

export interface Access {
  readonly namespace: string;
  readonly host: string;
  readonly token: string;
  readonly user: string;
  readonly skiptls: boolean;
  readonly ca_crt?: string;
  readonly pod?: string;
}

export const accessOf = ({ access }: Machine) => access as unknown as Access;

/** The kubeconfig that Zuul's executor makes of a node. */
export function zuulConfig({ host, ca_crt: ca, token, namespace, user, skiptls }: Access): string {
  const cluster = {
    server: host,
    ...(skiptls ? { "insecure-skip-tls-verify": true } : { "certificate-authority-data": ca }),
  };
  const path = join(site.folder, "zuul.kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "job",
    contexts: [{ name: "job", context: { cluster: "c", user, namespace } }],
    clusters: [{ name: "c", cluster }],
    users: [{ name: user, user: { token } }],
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

export interface Named {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}
export const RBAC = "/apis/rbac.authorization.k8s.io/v1";

/** Gives a cluster role to a subject until the test ends. */
export async function bindAll(role: string, subject: Readonly<Record<string, string>>): Promise<void> {
  onTestFinished(
    async () => void (await site.call("DELETE", `${RBAC}/clusterrolebindings/tried`, "admin-token")),
  );
  await site.api("POST", `${RBAC}/clusterrolebindings`, {
    metadata: { name: "tried" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [subject],
  });
}

/** Makes the cluster roles of the page until the test ends: other tests of a file are of a cluster without them. */
export async function applyRoles(roles: readonly object[] = ROLES): Promise<void> {
  for (const role of roles) {
    const { name } = (role as Named).metadata;
    onTestFinished(
      async () => void (await site.call("DELETE", `${RBAC}/clusterroles/${name}`, "admin-token")),
    );
    await site.api("POST", `${RBAC}/clusterroles`, role);
  }
}
