import type { Clock, Driver, DriverConfig, DriverContext, Provider } from "@nodeyard/driver";
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
import type { ConformanceRig } from "@nodeyard/driver-testkit";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { startOpenshift } from "../openshift/index.ts";
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

/** The driver, on a host whose kubeconfig is `kubeconfig`. */
export function driverOn(kind: Kind, kubeconfig: string): Driver<KubeProviderConfig> {
  const env = { KUBECONFIG: kubeconfig };
  const host: KubeHost = { ...thisHost, files: { ...thisHost.files, env } };
  return createKubernetesDrivers(host)[KINDS.indexOf(kind)]!;
}

/** One driver on a real control plane, emptied afterwards. */
export async function kubernetesRig(site: KubernetesSite, kind: Kind): Promise<ConformanceRig> {
  const label =
    kind === "openshiftpods" ? { name: "small", image: "i" } : { name: "small", type: "pod", image: "i" };
  const config = compile(kind, [{ ...label, cpu: 1, memory: 128 }]);
  const pool = config.pools[0]!;
  const openshift = kind === "openshift" ? await startOpenshift(site) : undefined;
  const kubeconfig = openshift?.kubeconfig("admin") ?? site.kubeconfig("admin");
  const driver = driverOn(kind, kubeconfig);
  const opened: Provider[] = [];
  if (kind === "openshiftpods") await site.project("main");
  return {
    clock: systemClock,
    providerName: config.name,
    pool,
    label: pool.labels.get("small")!,
    async open(installation) {
      const provider = await driver.open(config, contextOf(installation));
      opened.push(provider);
      return provider;
    },
    drive: (work) => work,
    settle: () => new Promise((resolve) => setTimeout(resolve, 300)),
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
      await openshift?.stop();
      await site.empty();
    },
  };
}
