import {
  type DriverContext,
  type LabelConfig,
  openProvider,
  type Provider,
  type Share,
} from "@nodeyard/driver";
import type { Cluster } from "./clusters.ts";
import type { KubeLabelOwn, KubeProviderConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { JobAccess } from "./nodes/access.ts";
import { IsolatedNodes } from "./nodes/isolated.ts";
import { SharedNodes } from "./nodes/shared.ts";
import type { Site } from "./site.ts";

/** Opens a provider of a cluster. Rejects when the credential is invalid or may not list the nodes' objects. */
export function kubeProvider(
  kind: Site["kind"],
  config: KubeProviderConfig,
  { clock, random, log, installation, purpose, remark = () => {} }: DriverContext,
  lease: Share<Cluster>,
): Promise<Provider> {
  return openProvider(config.name, mapError, () => {
    const cluster = lease.account;
    const access = new JobAccess(cluster.connection, { clock, random });
    const site: Site = { kind, config, cluster, access, installation, clock, random, log, remark, purpose };
    const nodes = kind === "openshiftpods" ? new SharedNodes(site) : new IsolatedNodes(site);
    return {
      place: () => cluster.connection.place,
      offers: {
        handover: {
          ready: async (tag, { signal }) => void (await nodes.stands(tag, signal)),
          access: (tag, { signal }) => nodes.renew(tag, signal),
        },
      },
      create: (order, step) => nodes.create(order, step),
      remove: (tag, step) => nodes.remove(tag, step),
      find: (tag, signal, stored = null) => nodes.find(tag, signal, stored),
      list: (signal) => nodes.list(signal),
      removeResource: (resource, signal) => nodes.removeResource(resource, signal),
      quota: (signal) => nodes.quota(signal),
      need: (label, signal) => nodes.need(label as LabelConfig<KubeLabelOwn>, signal),
      check: (signal) => nodes.open(signal),
      async close() {
        nodes.close();
        await lease.release();
      },
    };
  });
}
