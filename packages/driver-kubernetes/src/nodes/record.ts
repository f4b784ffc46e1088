import type { Machine, Tag } from "@nodeyard/driver";
import type { Access, Pod } from "../client/index.ts";
import { USER } from "./access.ts";

/** Where a node is, by the names of the cluster. */
export interface NodePlace {
  readonly namespace: string;
  readonly pod: string | null;
  /** The namespace is the node's own, and not one of many. */
  readonly isOwn: boolean;
}

/**
 * `connection_port` as Zuul's executor reads it (docs/contract/records.md, "Node"): it makes a kubeconfig of it.
 * `token` null: the launcher has only a certificate.
 */
export function portOf(
  kind: string,
  { namespace, pod, isOwn }: NodePlace,
  { server, route }: Pick<Access, "server" | "route">,
  token: string | null,
): Readonly<Record<string, unknown>> {
  const ca = route.ca === null ? null : Buffer.from(route.ca).toString("base64");
  return {
    ...(kind === "kubernetes" ? { name: namespace } : {}),
    namespace,
    host: server,
    skiptls: !route.verify,
    token,
    user: USER,
    // Where the project is shared, Nodepool writes it in any case.
    ...(isOwn && (!route.verify || ca === null) ? {} : { ca_crt: ca }),
    ...(pod === null ? {} : { pod }),
  };
}

/** What the record says of a node; the label has the rest. */
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
    interfaceIp: place.pod,
    cloud,
    hostId: pod?.spec.nodeName ?? null,
    resources: resources ?? null,
    hostKeys: [],
    access: port,
  };
}

/** Four hexadecimal digits and a letter, by which a name that somebody else has becomes ours: never a number, which Nodepool would take for a node's id. */
export function markOf({ installation, provider }: Tag): string {
  let hash = 0x811c9dc5;
  for (const char of `${installation} ${provider}`)
    hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193) >>> 0;
  return `n${hash.toString(16).padStart(8, "0")}`;
}
