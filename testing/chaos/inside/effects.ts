import type { Op } from "@nodeyard/tree";

/** Everything that a launcher does to the world outside, by the names that a kill plan uses. */
export const EFFECTS = [
  "pool.register",
  "request.accept",
  "request.fulfil",
  "request.put-back",
  "node.create",
  "node.lock",
  "driver.create",
  "node.external-id",
  "node.ready",
  "node.reuse",
  "node.release",
  "node.deleting",
  "driver.remove",
  "node.remove",
  "lease.hold",
  "lease.grant",
  "lease.end",
] as const;
export type Effect = (typeof EFFECTS)[number];

/** Before the call; sent, without an answer yet; answered, but the caller does not know yet. */
export const MOMENTS = ["before", "during", "after"] as const;
export type Moment = (typeof MOMENTS)[number];

/** Names the effects of writes. It remembers which nodes are being launched, to tell a new node from a reused one. */
export class EffectNames {
  readonly #launching = new Set<string>();

  /** The effects of a commit, in the order of its operations. */
  of(ops: readonly Op[]): readonly Effect[] {
    return ops.flatMap((op) => this.#of(op, ops) ?? []);
  }

  #of(op: Op, all: readonly Op[]): Effect | undefined {
    const { path } = op;
    if (op.op === "create") return created(path, op.data);
    if (op.op === "delete") return deleted(path);
    if (op.op !== "set") return undefined;
    const record = parse(op.data);
    if (path.startsWith("/nodepool/requests/")) return requestSet(record.state);
    if (path.startsWith("/nodeyard/leases/")) return record.state === "granted" ? "lease.grant" : undefined;
    return path.startsWith("/nodepool/nodes/") ? this.#nodeSet(path, record, all) : undefined;
  }

  #nodeSet(path: string, record: Record<string, unknown>, all: readonly Op[]): Effect | undefined {
    if (record.state === "building") {
      this.#launching.add(path);
      return all.some((op) => op.op === "create") ? "node.lock" : "node.external-id";
    }
    const launched = this.#launching.delete(path);
    if (record.state === "deleting") return "node.deleting";
    if (record.state !== "ready") return undefined;
    if (record.allocated_to === null) return "node.release";
    return launched ? "node.ready" : "node.reuse";
  }
}

function deleted(path: string): Effect | undefined {
  if (/^\/nodepool\/nodes\/\d{10}$/.test(path)) return "node.remove";
  return path.startsWith("/nodeyard/leases/") ? "lease.end" : undefined;
}

function created(path: string, data: Uint8Array | undefined): Effect | undefined {
  if (path === "/nodepool/nodes/") return "node.create";
  if (path.startsWith("/nodepool/components/pool/")) return "pool.register";
  const lease =
    /\/lock\/[^/]+$/.test(path) &&
    Buffer.from(data ?? "")
      .toString()
      .startsWith("Nodeyard:lease:");
  return lease ? "lease.hold" : undefined;
}

function requestSet(state: unknown): Effect | undefined {
  if (state === "pending") return "request.accept";
  if (state === "fulfilled") return "request.fulfil";
  return state === "requested" ? "request.put-back" : undefined;
}

function parse(data: Uint8Array): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>;
  } catch {
    return {};
  }
}
