import { splice } from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";

/** Where leases are kept. */
export const LEASES = "/nodeyard/leases";

/**
 * waiting: its request is not fulfilled yet. granted: the nodes are held for it. failed: no pool could serve it.
 * released: its owner gave it back, or its time is over, and its nodes are about to be returned.
 */
export type LeaseState = "waiting" | "granted" | "failed" | "released";

/** The right of a client without a tree session to use nodes until a point in time. */
export interface Lease {
  readonly id: string;
  readonly state: LeaseState;
  /** Who asked, for people: user@host. */
  readonly owner: string;
  readonly labels: readonly string[];
  /** The node request it was made with; null until that is written. */
  readonly request: string | null;
  /** In the order of `labels`, once granted. */
  readonly nodes: readonly string[];
  /** Tree time, milliseconds. */
  readonly created: number;
  /** Tree time, milliseconds, at which the nodes are returned whatever happens. */
  readonly expires: number;
}

export class LeaseError extends NodeyardError {}

const VERSION = 1;

export function leasePath(id: string): string {
  return `${LEASES}/${id}`;
}

/** Requestor of a lease's request, and identifier of the contenders that hold its nodes. */
export function leaseRequestor(id: string): string {
  return `Nodeyard:lease:${id}`;
}

/** The lease that a requestor stands for; undefined when it is somebody else. */
export function leaseIdOf(requestor: string | null): string | undefined {
  const match = /^Nodeyard:lease:([0-9a-z-]+)$/.exec(requestor ?? "");
  return match?.[1];
}

/** `stored`: the record as it was read, of one that is changed. What a later release wrote into it stays, byte for byte. */
export function encodeLease(lease: Lease, stored?: Uint8Array): Uint8Array {
  const { id: _, ...fields } = lease;
  if (stored === undefined) return Buffer.from(JSON.stringify({ v: VERSION, ...fields }));
  const values = Object.entries(fields).map(([key, value]) => [key, JSON.stringify(value)] as const);
  return Buffer.from(splice(Buffer.from(stored).toString(), new Map(values), new Map()));
}

/** Throws LeaseError for a record that is not a lease of a version we read. */
export function decodeLease(id: string, data: Uint8Array): Lease {
  let value: Partial<Record<keyof Lease | "v", unknown>>;
  try {
    value = JSON.parse(Buffer.from(data).toString()) as typeof value;
  } catch (error) {
    throw new LeaseError("lease.not_json", `lease ${id} is not JSON`, { cause: error });
  }
  const { v, state, owner, labels, request, nodes, created, expires } = value ?? {};
  if (v !== VERSION)
    throw new LeaseError(
      "lease.version",
      `lease ${id} has version ${JSON.stringify(v)}, this Nodeyard reads ${VERSION}`,
    );
  if (
    !isState(state) ||
    !isTexts(labels) ||
    !isTexts(nodes) ||
    typeof created !== "number" ||
    typeof expires !== "number"
  ) {
    throw new LeaseError("lease.bad_field", `lease ${id} lacks a field or has one of a wrong type`);
  }
  return {
    id,
    state,
    owner: typeof owner === "string" ? owner : "",
    labels,
    request: typeof request === "string" ? request : null,
    nodes,
    created,
    expires,
  };
}

function isState(value: unknown): value is LeaseState {
  return value === "waiting" || value === "granted" || value === "failed" || value === "released";
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}
