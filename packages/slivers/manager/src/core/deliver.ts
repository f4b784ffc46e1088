import { defined } from "@nodeyard/runtime";
import type { Malformed, Refusal } from "@nodeyard/sliver-protocol";
import { ConflictingDocumentError, MassRemovalError, StaleDocumentError } from "../errors.ts";
import { type Capacity, Promises, takesPart } from "./capacity.ts";
import type { Observed } from "./plan.ts";
import {
  compareVersions,
  type Incoming,
  type Local,
  type SliverRecord,
  type State,
  type Version,
  versionText,
} from "./record.ts";
import { isSpare } from "./spares.ts";

/** A parsed document or ticket. */
export interface Delivery {
  readonly version: Version;
  /** Digest of the signed text; empty for sources in which two texts may have the same version. */
  readonly digest: string;
  readonly writer?: string;
  readonly records: readonly Incoming[];
  readonly malformed: readonly Malformed[];
  /** Most slivers that the writer intends to end; absent: the writer does not say. */
  readonly removes?: number;
}

/** Up to this number of slivers may end at once without a statement of the writer. */
const MANY = 4;

/** The state after a delivery, and the refused parts. */
export interface Delivered {
  readonly state: State;
  readonly refused: readonly Refusal[];
}

/**
 * Applies a complete document: slivers that it does not list are ended. `found` are the slivers on the machine; after a lost store they are
 * ended too. Throws StaleDocumentError, ConflictingDocumentError, MassRemovalError.
 */
export function deliverFull(
  state: State,
  delivery: Delivery,
  capacity: Capacity,
  found: readonly Pick<Observed, "name" | "generation">[] = [],
): Delivered {
  checkVersion(state, delivery);
  const { single, duplicates } = unique(delivery.records);
  const { version } = delivery;
  // A listed sliver stays even when its entry is malformed or does not fit: its writer did not intend to end it.
  const listed = new Set([
    ...delivery.records.map(({ name }) => name),
    ...delivery.malformed.flatMap(({ name }) => name ?? []),
  ]);
  const survives = ({ name, stamp }: SliverRecord) =>
    listed.has(name) || compareVersions(stamp, version) >= 0;
  checkRemoval(state, delivery, found, survives);
  const kept = new Map([...state.records].filter(([, record]) => survives(record)));
  const merged = merge({ ...state, records: kept }, single, capacity);
  const records = new Map(
    [...merged.state.records].map(([name, record]) => [
      name,
      compareVersions(record.stamp, version) >= 0 ? record : { ...record, stamp: version },
    ]),
  );
  const refused: Refusal[] = [
    ...delivery.malformed.map((one): Refusal => ({ ...one, code: "malformed" })),
    ...duplicates.map((name): Refusal => ({ name, code: "duplicate", reason: "listed twice" })),
    ...merged.refused,
  ];
  // The same text again keeps the refusals of the first delivery.
  const again = compareVersions(version, state.minimum) === 0 && delivery.digest !== "";
  const report = again && delivery.digest === state.digest ? state.refused : refused;
  const { writer: _before, ...rest } = merged.state;
  const written = defined({ writer: delivery.writer });
  // A complete document ends the safe mode: from now on it is known what may be removed.
  const next = { ...rest, ...written, minimum: version, digest: delivery.digest, safe: false, records };
  return { state: { ...next, refused: report }, refused: report };
}

/** Applies a ticket. Other records and the minimum version stay. Throws StaleDocumentError. */
export function deliverPartial(state: State, delivery: Delivery, capacity: Capacity): Delivered {
  if (compareVersions(delivery.version, state.minimum) < 0) throw stale(delivery.version, state);
  const merged = merge(state, delivery.records, capacity);
  const malformed = delivery.malformed.map((one): Refusal => ({ ...one, code: "malformed" }));
  return { state: merged.state, refused: [...malformed, ...merged.refused] };
}

/** Refuses an older document, one of another writer in the same epoch, and another text with the same version. */
function checkVersion(state: State, { version, digest, writer }: Delivery): void {
  const order = compareVersions(version, state.minimum);
  if (order < 0) throw stale(version, state);
  if (version.epoch === state.minimum.epoch && state.writer !== undefined && writer !== state.writer)
    throw new ConflictingDocumentError(
      `${state.writer} writes for this node in epoch ${version.epoch}; ${writer ?? "a writer without a name"} needs a higher epoch`,
    );
  if (order === 0 && digest !== "" && state.digest !== "" && digest !== state.digest)
    throw new ConflictingDocumentError(
      `document ${versionText(version)} was received before with other content: two launchers write for this node`,
    );
}

/**
 * Refuses a document that would end most slivers without saying so. A mistaken document or an empty answer would otherwise end everything.
 */
function checkRemoval(
  { records, safe }: State,
  { records: incoming, removes = 0 }: Delivery,
  found: readonly Pick<Observed, "name" | "generation">[],
  survives: (record: SliverRecord) => boolean,
): void {
  const next = new Map(incoming.map(({ name, generation }) => [name, generation]));
  const lost = safe ? found.filter(({ name }) => !records.has(name) && !isSpare(name)) : [];
  const known = [...records.values()].filter(takesPart);
  const ended = [
    ...known.filter((one) => !survives(one) || (next.get(one.name) ?? one.generation) > one.generation),
    ...lost.filter((one) => next.get(one.name) !== one.generation),
  ];
  const present = known.length + lost.length;
  if (present < MANY || ended.length * 2 <= present || ended.length <= removes) return;
  throw new MassRemovalError(
    ended.map(({ name }) => name),
    present,
  );
}

function stale(version: Version, { minimum }: State): StaleDocumentError {
  return new StaleDocumentError(
    `version ${versionText(version)} is older than ${versionText(minimum)}, which this node has`,
  );
}

/** Records whose name occurs once. Of a name that is listed twice neither entry counts, because one of them is a mistake. */
function unique(records: readonly Incoming[]): { single: Incoming[]; duplicates: string[] } {
  const count = new Map<string, number>();
  for (const { name } of records) count.set(name, (count.get(name) ?? 0) + 1);
  return {
    single: records.filter(({ name }) => count.get(name) === 1),
    duplicates: [...count].filter(([, times]) => times > 1).map(([name]) => name),
  };
}

/**
 * Applies each record by the old manager's rule: refused when stale, inserted when unknown, updated when newer, otherwise unchanged.
 * Records that need no more than before come first. Then records that need more follow, the oldest first, as long as they fit (rule 9).
 */
function merge(state: State, incoming: readonly Incoming[], capacity: Capacity): Delivered {
  const promises = new Promises(capacity);
  // First the present records, so that a new one gets only what they leave.
  for (const record of state.records.values()) promises.add(record);
  const records = new Map(state.records);
  const refused: Refusal[] = [];
  let { nextIncarnation } = state;
  const accept = (given: Incoming, old: SliverRecord | undefined) => {
    if (old !== undefined) promises.add(old, -1);
    promises.add(given);
    const fresh = () => freshLocal(nextIncarnation++, state.safe);
    records.set(given.name, join(given, old, fresh));
  };
  const growing: Incoming[] = [];
  for (const given of incoming) {
    const old = records.get(given.name);
    // A known record is neither refused nor changed: documents are delivered again and again.
    const verdict = orderOf(given, old, state.minimum);
    if (verdict === "stale") refused.push(staleRefusal(given, old));
    if (verdict !== "newer") continue;
    if (old !== undefined && !grows(given, old)) accept(given, old);
    else growing.push(given);
  }
  for (const given of byAge(growing, records)) {
    const old = records.get(given.name);
    const lack = promises.lacks(given, old);
    if (lack === undefined) accept(given, old);
    else
      refused.push({
        name: given.name,
        code: "capacity",
        reason: `wants ${lack.wanted} ${lack.key}, and ${lack.free} is free`,
      });
  }
  return { state: { ...state, nextIncarnation, records }, refused };
}

/** Whether `given` needs more of a guaranteed resource than `old`. */
function grows(given: Incoming, old: SliverRecord): boolean {
  const none = { cpu: 0, cores: 0, memory: 0, net: 0, disk: 0 };
  return new Promises(none).lacks(given, old) !== undefined;
}

/** Whether a record is newer than the one that this node has (`old`), the same, or stale and refused. */
function orderOf(
  given: Incoming,
  old: SliverRecord | undefined,
  minimum: Version,
): "newer" | "known" | "stale" {
  if (compareVersions(given.stamp, minimum) < 0) return "stale";
  if (old === undefined) return "newer";
  if (given.generation < old.generation) return "stale";
  return compareVersions(given.stamp, old.stamp) > 0 ? "newer" : "known";
}

/** Of one record; the rest of the document is applied. */
function staleRefusal(given: Incoming, old: SliverRecord | undefined): Refusal {
  const older = old !== undefined && given.generation < old.generation;
  const reason = older
    ? `generation ${given.generation} ended; this node has ${old.generation}`
    : `its own version ${versionText(given.stamp)} is stale`;
  return { name: given.name, code: "stale", reason };
}

/** Existing records by their incarnation, then new ones in the order of the document. */
function byAge(incoming: readonly Incoming[], records: ReadonlyMap<string, SliverRecord>): Incoming[] {
  const age = ({ name }: Incoming) => records.get(name)?.local.incarnation ?? Number.POSITIVE_INFINITY;
  return [...incoming].sort((a, b) => (age(a) === age(b) ? 0 : age(a) - age(b)));
}

/** Joins a record with its local part. Another generation or kind of account is a new incarnation, which inherits nothing local. */
function join(given: Incoming, old: SliverRecord | undefined, fresh: () => Local): SliverRecord {
  const { loans, ...rest } = given;
  const same = old !== undefined && old.generation === given.generation && old.kind === given.kind;
  const local = same ? old.local : fresh();
  return { ...rest, local: loans === undefined ? local : { ...local, loans } };
}

/** The local part of a new incarnation. In safe mode a sliver of that name that still runs is adopted instead of made. */
function freshLocal(incarnation: number, safe: boolean): Local {
  return { incarnation, loans: [], ...(safe ? { adopt: true as const } : {}) };
}
