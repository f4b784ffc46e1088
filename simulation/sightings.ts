import type { Canary } from "@nodeyard/model";
import type { AppliedWrite, Op } from "@nodeyard/tree";

/** What a run comes by that is neither a fault nor a change of state: ways of the launcher that must not fall asleep. */
export const SIGHTINGS = {
  "breaker opens": "launches of an offering failed in a row, or the cloud has no room",
  "breaker opens for one zone": "another zone of the provider goes on",
  "breaker opens again": "the one try of an open breaker failed",
  "breaker is tried": "one request tries what is open",
  "breaker closes": "a try of what is open went well",
  "slot claimed": "a node is given a slot",
  "slot freed": "a slot is given back",
  "backing node adopted": "a delivered node becomes a backing node",
  "backing node failed": "a backing node takes no more slots",
  "backing node given back": "an empty backing node goes",
  "dead letter": "a node that cannot be deleted is marked",
  "launch told to a trial": "a new build of an image is on trial, and a launcher says how a launch went",
  "build promoted": "a new build of an image takes over",
  "waits: capacity.pool": "a request waits for a pool's limit",
  "waits: capacity.tenant": "a request waits for its tenant's limit",
  "waits: image.waits": "a request waits for an image",
  "waits: offering.failing": "a request waits for an open breaker",
  "waits: offering.budget": "a request waits for the budget of an offering",
  "waits: offering.trying": "a request waits for another's try",
} as const;

export type Sighting = keyof typeof SIGHTINGS;

/** What a request waits for, where it is of interest. */
export function sightingOfVerdict(code: string): Sighting | undefined {
  const name = `waits: ${code}`;
  return name in SIGHTINGS ? (name as Sighting) : undefined;
}

const CANARIES = "/nodeyard/canaries/";
const BREAKER = /^\/nodeyard\/breakers\/[^/]+$/;
const PROBE = /^\/nodeyard\/breakers\/[^/]+\/probe$/;
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
  if (op.op === "set" && path.startsWith("/nodepool/nodes/")) {
    // Text within text: the record is not parsed, because somebody may have written what cannot be.
    if (Buffer.from(op.data).includes(String.raw`\"failed\":true`)) return ["backing node failed"];
  }
  return [];
}

function breaker(op: "create" | "set", data: Uint8Array | undefined): readonly Sighting[] {
  const { az } = JSON.parse(Buffer.from(data ?? "{}").toString()) as { az: string | null };
  if (op === "set") return ["breaker opens again"];
  return az === null ? ["breaker opens"] : ["breaker opens", "breaker opens for one zone"];
}

/** A build that is rolled back is left out: of a run's few launches of the image it takes more than most trials see. */
function trial(data: Uint8Array | undefined): readonly Sighting[] {
  const { candidate, tallies, last } = JSON.parse(Buffer.from(data ?? "").toString()) as Canary;
  if (candidate === null) return last?.verdict === "promoted" ? ["build promoted"] : [];
  const { candidate: ours, stable } = tallies;
  return ours.boots + ours.failed + stable.boots + stable.failed > 0 ? ["launch told to a trial"] : [];
}
