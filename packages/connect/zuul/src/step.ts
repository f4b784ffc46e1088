import type { LeaseRow } from "@nodeyard/client";
import type { Assignment, Lifecycle, NodesetRequest, ProviderNode } from "./records.ts";

/** All that decides about a node. */
export interface Facts {
  readonly node: ProviderNode;
  readonly assignment: Assignment | undefined;
  /** The request of the assignment. */
  readonly request: { readonly value: NodesetRequest; readonly version: number } | undefined;
  readonly lifecycle: Lifecycle | undefined;
  /** Undefined: there is none. */
  readonly lease: Pick<LeaseRow, "state"> | undefined;
  /** Seconds, as Zuul counts. */
  readonly now: number;
}

/** What is to be done next with a node that nobody else has locked. */
export type Step =
  /** Note that it is being made; then it is leased. */
  | { readonly do: "begin" }
  | { readonly do: "lease" }
  | { readonly do: "ready" }
  | { readonly do: "fail"; readonly state: "failed" | "tempfailed" }
  /** Somebody has asked for another state. */
  | { readonly do: "move"; readonly state: string; readonly comment: string | null }
  /** Note that it is not used any more, so that no launcher takes it while its lease is given back. */
  | { readonly do: "retire" }
  /** Give the lease back, then delete the record if that is due. */
  | { readonly do: "remove"; readonly record: boolean }
  | { readonly do: "wait"; readonly until: number | undefined };

const WAIT: Step = { do: "wait", until: undefined };
/** Zuul's states of a node that is not used any more. */
const OVER: readonly string[] = ["failed", "tempfailed", "used", "outdated", "deregister", "slot-host"];

/**
 * What zuul-launcher does in `_processProviderNode` for nodes of its own (zuul/launcher/server.py), with a lease in place of a cloud's server.
 * Each step follows from what is stored, and what a launcher could still take is retired before its lease is given back, so that whoever
 * continues after a crash decides the same.
 */
export function nextStep(facts: Facts): Step {
  const { node, assignment, request, lifecycle, lease, now } = facts;
  const isActive = assignment !== undefined && request !== undefined;
  if (lifecycle?.next_state != null && !isActive)
    return { do: "move", state: lifecycle.next_state, comment: lifecycle.next_comment ?? null };
  if (OVER.includes(node.state)) {
    if (isUnreferenced(facts)) return { do: "remove", record: true };
    return lease === undefined || lease.state === "released" ? WAIT : { do: "remove", record: false };
  }
  const isAbandoned = assignment !== undefined && request === undefined;
  // A held node keeps the assignment to a request that is gone.
  if (node.state === "hold" && lease?.state === "granted")
    return expiry(node.state_time, node.hold_expiration, now);
  if (isAbandoned || (isActive && isOrphan(facts))) return { do: "remove", record: true };
  if (isMade(node.state)) {
    // With the lease the node is lost: who finds no record does not use it.
    if (lease === undefined || lease.state !== "granted") return { do: "remove", record: true };
    return isActive ? WAIT : ageOf(node, now);
  }
  return making(node, lease);
}

function making(node: ProviderNode, lease: Facts["lease"]): Step {
  if (isUnknownShape(node)) return { do: "fail", state: "failed" };
  if (node.state === "requested") return { do: "begin" };
  if (lease === undefined) return { do: "lease" };
  if (lease.state === "granted") return { do: "ready" };
  if (lease.state === "failed") return { do: "fail", state: "failed" };
  return lease.state === "released" ? { do: "fail", state: "tempfailed" } : WAIT;
}

function isMade(state: string): boolean {
  return ["ready", "in-use", "hold", "snapshot"].includes(state);
}

/** Nodes that are cut into slots, and states of static nodes. */
function isUnknownShape({ main_node_id, subnodes, state }: ProviderNode): boolean {
  return (
    main_node_id != null || (subnodes ?? []).length > 0 || state === "registering" || state === "rebuilding"
  );
}

/** The launcher reads the state of a node of its request until it has put another one in its place. */
function isUnreferenced(facts: Facts): boolean {
  return facts.assignment === undefined || facts.request === undefined || isOrphan(facts);
}

/** Its launcher died before it wrote the node into the request, and another one has made another node. */
function isOrphan({ node, assignment, request }: Facts): boolean {
  const { min_request_version: least } = assignment!;
  const isCurrent = least == null || request!.version >= least;
  return isCurrent && !request!.value.provider_node_data.some(({ uuid }) => uuid === node.uuid);
}

function ageOf({ request_time, state_time, max_age, max_ready_age }: ProviderNode, now: number): Step {
  const ends = [
    max_age ? request_time + max_age : undefined,
    max_ready_age ? state_time + max_ready_age : undefined,
  ];
  const first = Math.min(...ends.map((end) => end ?? Number.POSITIVE_INFINITY));
  if (first <= now) return { do: "retire" };
  return { do: "wait", until: Number.isFinite(first) ? first : undefined };
}

function expiry(since: number, seconds: number | null | undefined, now: number): Step {
  if (!seconds) return WAIT;
  return since + seconds <= now ? { do: "retire" } : { do: "wait", until: since + seconds };
}
