import type { Machine, Tag } from "@nodeyard/driver";
import type { Access, Pod } from "../client/index.ts";
import { USER } from "./access.ts";

/** Names of a node's objects in the cluster. */
export interface NodePlace {
  /** Namespace or project; in a shared project the name of the pool. */
  readonly namespace: string;
  /** Null: the node is a namespace without a pod of the launcher. */
  readonly pod: string | null;
  /** The namespace belongs to the node alone (not to many nodes). */
  readonly isOwn: boolean;
}

/**
 * `connection_port` in the format of Zuul's executor, which makes a kubeconfig of it (docs/contract/records.md, "Node").
 * `token` null: the launcher authenticates by a certificate only.
 */
export function portOf(
  kind: string,
  { namespace, pod, isOwn }: NodePlace,
  { server, route }: Pick<Access, "server" | "route">,
  token: string | null,
): Readonly<Record<string, unknown>> {
  // Base64 of the PEM, as in a kubeconfig's `certificate-authority-data`. Null: the system's authorities count.
  const ca = route.ca === null ? null : Buffer.from(route.ca).toString("base64");
  return {
    ...(kind === "kubernetes" ? { name: namespace } : {}),
    namespace,
    host: server,
    skiptls: !route.verify,
    token,
    user: USER,
    // In a shared project Nodepool always writes this key.
    ...(isOwn && (!route.verify || ca === null) ? {} : { ca_crt: ca }),
    ...(pod === null ? {} : { pod }),
  };
}

/**
 * Facts of a node for its record. The others come from the label. `hostKeys` is empty rather than absent, so that the launcher
 * does not scan.
 */
export function machineOf(
  externalId: string,
  place: NodePlace,
  port: Readonly<Record<string, unknown>>,
  {
    cloud,
    pod,
    resources,
  }: Pick<Machine, "resources"> & { readonly cloud: string | null; readonly pod: Pod | undefined },
): Machine {
  return {
    externalId,
    // Nodepool's record has the pod's name here, since a pod is not reached by an address.
    interfaceIp: place.pod,
    cloud,
    hostId: pod?.spec.nodeName ?? null,
    resources: resources ?? null,
    hostKeys: [],
    access: port,
  };
}

/**
 * A suffix for a name that is taken: `n` and eight hexadecimal digits. It must not be a number, because Nodepool takes a number at the end
 * for a node id.
 */
export function markOf({ installation, provider }: Tag): string {
  // FNV-1a, 32 bits. Two owners of one name with equal marks would only end a launch with an error, as the tags are compared.
  let hash = 0x811c9dc5;
  for (const char of `${installation} ${provider}`)
    hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193) >>> 0;
  return `n${hash.toString(16).padStart(8, "0")}`;
}
