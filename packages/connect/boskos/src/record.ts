import type { Reply } from "@nodeyard/client";
import { z } from "zod";

/** A lease as the API shows it. */
export type LeaseRow = Reply<"get_leases">;
/** How to reach a node of a lease. */
export type NodeAccess = Reply<"list_lease_nodes">["items"][number];

const recordSchema = z.strictObject({
  type: z.string(),
  /** "": nobody, after a release to a state that keeps the node. */
  owner: z.string(),
  /** While it waits the state that the caller asked for. */
  state: z.string(),
  /** False until a caller got it. */
  held: z.boolean(),
  /** Wall clock, milliseconds: when the caller last asked for it, and once it is held the last change. */
  updated: z.number(),
  userdata: z.record(z.string(), z.string()),
});

/** What a lease remembers of its resource. The connector keeps nothing else of it. */
export type ResourceRecord = Readonly<z.infer<typeof recordSchema>>;

/** A resource, and the lease whose node it is. */
export interface Resource {
  readonly lease: LeaseRow;
  readonly record: ResourceRecord;
}

/** The resource of a lease; undefined: no connector of Boskos made it. */
export function resourceOf(lease: LeaseRow): Resource | undefined {
  if (lease.job?.system !== "boskos" || lease.data === null) return undefined;
  try {
    return { lease, record: recordSchema.parse(JSON.parse(lease.data)) };
  } catch {
    return undefined;
  }
}

/** Keys of userdata that say how to reach the node; what callers send under these names is dropped. */
const OWN = ["node", "address", "port", "user", "connection", "known_hosts"] as const;

/** What callers may set. */
export function withoutOwn(userdata: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(userdata).filter(([key]) => !OWN.some((own) => own === key)));
}

/** The answer to an acquire, with the keys in the order of the real server. Values of userdata are strings, as its clients demand. */
export function shown({ lease, record }: Resource, node: NodeAccess | undefined): object {
  const { type, state, owner, updated, userdata } = record;
  const lastupdate = new Date(updated).toISOString();
  return {
    type,
    name: lease.id,
    state,
    owner,
    lastupdate,
    userdata: { ...userdata, ...(node && access(node)) },
  };
}

function access(node: NodeAccess): Partial<Record<(typeof OWN)[number], string>> {
  const { id, interface_ip: address, connection_port: port, username, connection_type: connection } = node;
  // As OpenSSH looks a host up: the port stands with the address unless it is the usual one.
  const host = port === null || port === 22 ? address : `[${address}]:${port}`;
  return {
    node: id,
    ...(address !== null && { address }),
    ...(port !== null && { port: String(port) }),
    ...(username !== null && { user: username }),
    ...(connection !== null && { connection }),
    ...(node.host_keys.length > 0 && {
      known_hosts: node.host_keys.map((key) => `${host} ${key}`).join("\n"),
    }),
  };
}
