import type { Clock, Driver, DriverConfig, DriverContext, Provider, Purpose } from "@nodeyard/driver";
import { DriverError } from "@nodeyard/driver";
import {
  createKubernetesDrivers,
  type KubeHost,
  type KubeProviderConfig,
  kubernetesConfig,
  openshiftConfig,
  openshiftpodsConfig,
  thisHost,
} from "@nodeyard/driver-kubernetes";
import { Between, type ConformanceRig } from "@nodeyard/driver-testkit";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { type Openshift, startOpenshift } from "../openshift/index.ts";
import type { KubernetesSite } from "./site.ts";

export type Kind = "kubernetes" | "openshift" | "openshiftpods";
const KINDS: readonly Kind[] = ["kubernetes", "openshift", "openshiftpods"];

const CONFIGS: Readonly<Record<Kind, DriverConfig<KubeProviderConfig>>> = {
  kubernetes: kubernetesConfig,
  openshift: openshiftConfig,
  openshiftpods: openshiftpodsConfig,
};

/** Lines that a driver logs. */
export interface Logged {
  readonly level: string;
  readonly text: string;
  readonly facts: object;
}

export function contextOf(
  installation: string,
  lines: Logged[] = [],
  clock: Clock = systemClock,
): DriverContext {
  const at = (level: string) => (facts: object, text: string) => void lines.push({ level, text, facts });
  return {
    clock,
    random: systemRandom,
    remark: ({ nodeId }, text) => void lines.push({ level: "remark", text, facts: { nodeId } }),
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
    installation,
  };
}

/** A provider of the file, compiled by the driver; `labels` are those of its one pool. */
export function compile(
  kind: Kind,
  labels: readonly Readonly<Record<string, unknown>>[],
  { provider = {}, pool = {} }: { readonly provider?: object; readonly pool?: object } = {},
): KubeProviderConfig {
  const fixed = { name: "kube", context: "test", "schedule-timeout": 2 };
  const raw = { ...fixed, pools: [{ name: "main", labels, ...pool }], ...provider };
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  const context = { labels: new Set(labels.map(({ name }) => String(name))), diskimages: new Map(), report };
  return CONFIGS[kind].load(raw, context)!;
}

/** The driver, on a host whose kubeconfig is `kubeconfig`. `between`: what stands between it and the API server. */
export function driverOn(kind: Kind, kubeconfig: string, between?: Between): Driver<KubeProviderConfig> {
  const env = { KUBECONFIG: kubeconfig };
  const host: KubeHost = { ...thisHost, files: { ...thisHost.files, env } };
  const connect: KubeHost["connect"] = (route) => {
    const { send, stream, close } = host.connect(route);
    return {
      send: (one) => between!.send(one, () => send(one)),
      async stream(one) {
        const instead = await between!.answer(one);
        if (instead === undefined) return stream(one);
        return { status: instead.status, body: (async function* () {})(), text: async () => instead.text };
      },
      close,
    };
  };
  return createKubernetesDrivers(between === undefined ? host : { ...host, connect })[KINDS.indexOf(kind)]!;
}

/** A test between the driver and the API server. */
function betweenServer(): Between {
  const THING = "(namespaces|projects|projectrequests|namespaces/[^/]+/pods)";
  return new Between({
    // Reviews of rights are questions.
    writes: ({ method, url }) => method !== "GET" && !url.includes("/apis/authorization.k8s.io/"),
    makes: ({ method, url }) => method === "POST" && new RegExp(`/${THING}$`).test(url),
    removes: ({ method, url }) => method === "DELETE" && new RegExp(`/${THING}/[^/]+$`).test(url),
    lists: ({ method, url }) =>
      method === "GET" && new RegExp(`/${THING}(\\?|$)`).test(url) && !url.includes("watch="),
  });
}

/** One driver on a real control plane, emptied afterwards. `elsewhere` starts another cluster, or has done so. */
export async function kubernetesRig(
  site: KubernetesSite,
  kind: Kind,
  elsewhere: () => Promise<KubernetesSite>,
): Promise<ConformanceRig> {
  const label =
    kind === "openshiftpods" ? { name: "small", image: "i" } : { name: "small", type: "pod", image: "i" };
  const config = compile(kind, [{ ...label, cpu: 1, memory: 128 }]);
  const pool = config.pools[0]!;
  const fronts: Openshift[] = [];
  const used: KubernetesSite[] = [];
  const kubeconfigOf = async (of: KubernetesSite) => {
    used.push(of);
    if (kind === "openshiftpods") await of.project("main");
    if (kind !== "openshift") return of.kubeconfig("admin");
    const front = await startOpenshift(of);
    fronts.push(front);
    return front.kubeconfig("admin");
  };
  const between = betweenServer();
  const kubeconfig = await kubeconfigOf(site);
  const opened: Provider[] = [];
  // A driver of its own for each, as processes have: providers of one driver share what its watches saw.
  const opens = async (at: string, installation: string, purpose?: Purpose, by?: Between) => {
    const context = { ...contextOf(installation, [], between.clock), ...(purpose && { purpose }) };
    const provider = await driverOn(kind, at, by).open(config, context);
    opened.push(provider);
    return provider;
  };
  return {
    ...between.faults(),
    clock: between.clock,
    providerName: config.name,
    pool,
    label: pool.labels.get("small")!,
    open: (installation, purpose) => opens(kubeconfig, installation, purpose, between),
    openElsewhere: async (installation) => opens(await kubeconfigOf(await elsewhere()), installation),
    async loseTag({ id }) {
      const path = kind === "openshiftpods" ? `main/pods/${String(id).replace(/^main-/, "")}` : String(id);
      const metadata = { labels: null, annotations: null };
      await site.api("PATCH", `/api/v1/namespaces/${path}`, { metadata });
    },
    drive: (work) => work,
    async settle() {
      // For the driver's watches. A namespace ends when the site comes to it, which on a busy machine is later.
      await new Promise((resolve) => setTimeout(resolve, 300));
      await Promise.all(used.map((of) => of.settled()));
    },
    ...(kind === "openshiftpods"
      ? {
          fillQuota: async () => {
            await site.api("POST", "/api/v1/namespaces/main/resourcequotas", {
              metadata: { name: "none" },
              spec: { hard: { pods: "0" } },
            });
            await site.until("the quota counts", async () => {
              const path = "/api/v1/namespaces/main/resourcequotas/none";
              const { status } = await site.api<{ status?: { hard?: object } }>("GET", path);
              return status?.hard !== undefined;
            });
          },
        }
      : {}),
    async makeForeign() {
      const pod = { metadata: { name: "theirs" }, spec: { containers: [{ name: "c", image: "i" }] } };
      if (kind === "openshiftpods") await site.api("POST", "/api/v1/namespaces/main/pods", pod);
      else await site.api("POST", "/api/v1/namespaces", { metadata: { name: "main-0000009999" } });
    },
    async stop() {
      for (const provider of opened) await provider.close();
      for (const front of fronts) await front.stop();
      for (const one of used) await one.empty();
    },
  };
}
