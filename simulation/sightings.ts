import type { Canary } from "@nodeyard/model";
import type { AppliedWrite, Op } from "@nodeyard/tree";

/** Special courses of a launcher, neither faults nor state transitions, that must occur in a campaign. */
export const SIGHTINGS = {
  "breaker opens": "launches of an offering failed in a row, or the cloud has no room",
  "breaker opens for one zone": "another zone of the provider continues",
  "breaker opens again": "the single try of an open breaker failed",
  "breaker is tried": "one request tries an open breaker",
  "breaker closes": "a try of an open breaker succeeded",
  "bought as the best": "a node of a label with several offerings is bought as the cheapest",
  "bought as another": "a node of a label with several offerings is bought as one that is not the cheapest",
  "checked for another use": "a node that was given back is checked",
  "free for another use": "a node that was given back has passed its check",
  "set granted": "a mixed set has all of its nodes",
  "set failed": "a mixed set gives back what it holds, since a part cannot be had",
  "slot claimed": "a node is given a slot",
  "slot freed": "a slot is returned",
  "backing node adopted": "a delivered node becomes a backing node",
  "backing node failed": "a backing node gets no more users",
  "backing node given back": "an empty backing node is given back",
  "dead letter": "a node that cannot be deleted is marked",
  "launch reported to a trial": "a new build of an image is on trial, and a launcher reports a launch",
  "build promoted": "a new build of an image takes over",
  "waits: capacity.pool": "a request waits for a pool's limit",
  "waits: capacity.tenant": "a request waits for its tenant's limit",
  "waits: budget.used": "a request waits for a new budget of its tenant",
  "waits: image.waits": "a request waits for an image",
  "waits: offering.failing": "a request waits for an open breaker",
  "waits: offering.budget": "a request waits for the budget of an offering",
  "waits: offer.awaited": "a request waits for a pool that left the registry or is being opened",
  "waits: offering.trying": "a request waits for another request's try",
} as const;

export type Sighting = keyof typeof SIGHTINGS;

/** What a request waits for, if it is listed. */
export function sightingOfVerdict(code: string): Sighting | undefined {
  const name = `waits: ${code}`;
  return name in SIGHTINGS ? (name as Sighting) : undefined;
}

/** Free for its user alone, or for all. */
const AGAIN = /"state":\s*"ready".*"times":[1-9]|"times":[1-9].*"state":\s*"ready"/;
const CANARIES = "/nodeyard/canaries/";
const BREAKER = /^\/nodeyard\/breakers\/[^/]+$/;
const PROBE = /^\/nodeyard\/breakers\/[^/]+\/probe$/;
const SET = /^\/nodeyard\/leases\/[^/]+$/;
const FOLDER = /^\/nodeyard\/slots\/\d+$/;
const CLAIM = /^\/nodeyard\/slots\/\d+\/\d+$/;

export function sightingsOf({ ops, sessionEnd }: AppliedWrite): readonly Sighting[] {
  return sessionEnd === true ? [] : ops.flatMap(sightingsOfOp);
}

function sightingsOfOp(op: Op): readonly Sighting[] {
  if (op.op === "check") return [];
  const { path } = op;
  const one = (regexp: RegExp, made: Sighting, gone?: Sighting): readonly Sighting[] | undefined => {
    if (!regexp.test(path)) return undefined;
    if (op.op === "delete") return gone === undefined ? [] : [gone];
    return [made];
  };
  const simple =
    one(PROBE, "breaker is tried") ??
    one(CLAIM, "slot claimed", "slot freed") ??
    one(FOLDER, "backing node adopted", "backing node given back") ??
    one(/^\/nodeyard\/dead-letters\/./, "dead letter");
  if (simple !== undefined) return simple;
  if (path.startsWith(CANARIES) && op.op === "set") return trial(op.data);
  if (BREAKER.test(path)) return op.op === "delete" ? ["breaker closes"] : breaker(op.op, op.data);
  if (op.op === "set" && SET.test(path)) return ofSet(Buffer.from(op.data));
  if (op.op === "set" && path.startsWith("/nodepool/nodes/")) {
    // JSON text within JSON text: the record is not parsed, because it may be unreadable.
    const text = Buffer.from(op.data);
    if (text.includes(String.raw`\"failed\":true`)) return ["backing node failed"];
    if (text.includes('"checking":true')) return ["checked for another use"];
    if (AGAIN.test(text.toString())) return ["free for another use"];
    if (text.includes('"offering":"spot"')) return ["bought as the best"];
    if (text.includes('"offering":"')) return ["bought as another"];
  }
  return [];
}

function ofSet(lease: Buffer): readonly Sighting[] {
  if (!lease.includes('"set":{')) return [];
  if (lease.includes('"state":"granted"')) return ["set granted"];
  return lease.includes('"state":"failed"') ? ["set failed"] : [];
}

function breaker(op: "create" | "set", data: Uint8Array | undefined): readonly Sighting[] {
  const { az } = JSON.parse(Buffer.from(data ?? "{}").toString()) as { az: string | null };
  if (op === "set") return ["breaker opens again"];
  return az === null ? ["breaker opens"] : ["breaker opens", "breaker opens for one zone"];
}

/** A rolled back build is not listed: few runs have as many launches of the image as a rollback needs. */
function trial(data: Uint8Array | undefined): readonly Sighting[] {
  const { candidate, tallies, last } = JSON.parse(Buffer.from(data ?? "").toString()) as Canary;
  if (candidate === null) return last?.verdict === "promoted" ? ["build promoted"] : [];
  const { candidate: ours, stable } = tallies;
  return ours.boots + ours.failed + stable.boots + stable.failed > 0 ? ["launch reported to a trial"] : [];
}
