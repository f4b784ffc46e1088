import type { SlotSettings } from "@nodeyard/driver";
import { claimPath, slotPlace } from "@nodeyard/model";
import { closedBecause, freeSlots, slotLabelOf } from "@nodeyard/scheduler";
import { agrees, type Backing, type RequestEntry, type SlotClaim, type View } from "@nodeyard/view";

/** Most requests that are written at once; the others follow when these are in the view. */
const ASK_AT_ONCE = 32;
/** Milliseconds for which a failed request is kept, so that every launcher whose launch waits for it sees that it failed. */
const SHOW_FAILED_MS = 1_000;

/** One piece of work of the launcher that is elected for a metastatic provider. */
export type OwnerAction =
  /** Request backing nodes of a label. */
  | { readonly type: "ask"; readonly label: string; readonly count: number }
  /** Delete a request for a backing node that is not needed any more. */
  | { readonly type: "withdraw"; readonly request: RequestEntry; readonly why: string }
  /** A request is fulfilled: its node becomes a backing node. */
  | { readonly type: "adopt"; readonly request: RequestEntry; readonly label: string }
  /** Create the folder of a backing node's slots, with claims for the nodes that use it already. */
  | { readonly type: "open"; readonly backing: Backing }
  /** Write into the record that the backing node gets no new slots. */
  | { readonly type: "fail"; readonly backing: Backing }
  /** Create the claim that a node's record names. */
  | { readonly type: "reclaim"; readonly node: string }
  /** Delete a claim that no record names. */
  | { readonly type: "drop"; readonly claim: SlotClaim }
  /** Delete an idle node whose backing node gets no new slots, or is gone. */
  | { readonly type: "recycle"; readonly node: string; readonly why: string }
  /** Unlock a backing node as `used`: the launcher of its own provider then deletes it. */
  | { readonly type: "release"; readonly backing: Backing; readonly why: string }
  /** Delete the slots folder of a backing node that is gone. */
  | { readonly type: "close"; readonly backing: string };

/** Identifies an action within a plan. The same action has the same key in the next plan, by which its pause is found. */
export function keyOf(action: OwnerAction): string {
  switch (action.type) {
    case "ask":
      return `ask ${action.label}`;
    case "withdraw":
    case "adopt":
      return `${action.type} ${action.request.id}`;
    case "reclaim":
    case "recycle":
      return `${action.type} ${action.node}`;
    case "drop":
      return `drop ${action.claim.path}`;
    case "close":
      return `close ${action.backing}`;
    default:
      return `${action.type} ${action.backing.id}`;
  }
}

/** What `planOwner` decides from. */
export interface OwnerFacts {
  readonly view: Pick<View, "slots" | "nodes" | "unreadable">;
  readonly provider: string;
  readonly labels: ReadonlyMap<string, SlotSettings>;
  /** Backing nodes of this provider. */
  readonly backings: readonly Backing[];
  /** Requests of this owner. */
  readonly requests: readonly RequestEntry[];
  /** When the last slot of a backing node became free, or it was first seen; steady milliseconds. */
  readonly lastUsed: (backing: string) => number;
  /** Time before which no backing node of a label is requested; steady milliseconds. */
  readonly askAfter: ReadonlyMap<string, number>;
  /** Whether to compare all claims with all records: at the start, now and then, and when a node went without freeing its slot. */
  readonly compare: boolean;
  /** Steady milliseconds. */
  readonly now: number;
  /** How long ago an instant in the record of a node or request was, by id, milliseconds. */
  readonly ageOf: (id: string, instant: number) => number;
  /** Whether ages may be used for deletions: tree time has not jumped. */
  readonly agesTrusted: boolean;
}

/** What `planOwner` decided. */
export interface OwnerPlan {
  readonly actions: readonly OwnerAction[];
  /** When to plan again without any event; Infinity: never. Steady milliseconds. */
  readonly nextAt: number;
}

/** A plan that is being made. */
interface Draft {
  readonly actions: OwnerAction[];
  nextAt: number;
}

/**
 * Compares the wanted backing nodes of one metastatic provider with those that it has. Pure and level-triggered: work that a crash
 * interrupted shows as a difference, in this process or in the next owner. Called by BackingController at each reconciliation; costs
 * as much as the provider has backing nodes and requests, and with `compare` also claims and nodes.
 */
export function planOwner(facts: OwnerFacts): OwnerPlan {
  const draft: Draft = { actions: [], nextAt: Number.POSITIVE_INFINITY };
  planRequests(facts, draft);
  planBackings(facts, draft);
  if (facts.compare) planClaims(facts, draft);
  return draft;
}

/** Makes the plan look again at `at`, when something becomes due. */
function lookAt(draft: Draft, at: number): void {
  draft.nextAt = Math.min(draft.nextAt, at);
}

/** Requests backing nodes for the launches that lack a slot, and deletes requests that are not needed any more. */
function planRequests(facts: OwnerFacts, draft: Draft): void {
  const open = new Map<string, RequestEntry[]>();
  for (const request of facts.requests) {
    const label = slotLabelOf(request.record, facts.labels);
    if (request.record.state === "failed") endFailed(facts, request, draft);
    else if (label === undefined || !facts.labels.has(label)) endForeign(request, label ?? "", draft);
    else open.set(label, [...(open.get(label) ?? []), request]);
  }
  for (const [label, settings] of facts.labels) {
    const asked = open.get(label) ?? [];
    for (const request of asked)
      if (request.record.state === "fulfilled") draft.actions.push({ type: "adopt", request, label });
    if (settings.slots >= 1) balance(facts, label, settings, asked, draft);
  }
}

/** Deletes a failed request after it has been visible for `SHOW_FAILED_MS`. */
function endFailed({ now, ageOf }: OwnerFacts, request: RequestEntry, draft: Draft): void {
  const at = now - ageOf(request.id, (request.record.stateTime ?? 0) * 1000) + SHOW_FAILED_MS;
  if (at > now) lookAt(draft, at);
  else draft.actions.push({ type: "withdraw", request, why: "it failed" });
}

/** Ends a request of a former configuration. If it is being served, its node is adopted and given back at once. */
function endForeign(request: RequestEntry, label: string, draft: Draft): void {
  const { state } = request.record;
  if (state === "requested") draft.actions.push({ type: "withdraw", request, why: "its label is gone" });
  else if (state === "fulfilled") draft.actions.push({ type: "adopt", request, label });
}

/**
 * Requests as many backing nodes of a label as the waiting launches need, or withdraws requests that are too many. A requested backing node
 * counts with all of its slots before it exists.
 */
function balance(
  facts: OwnerFacts,
  label: string,
  settings: SlotSettings,
  asked: readonly RequestEntry[],
  draft: Draft,
): void {
  // Launches of all launchers that have a record and no slot, each counted once.
  const wanted = facts.view.slots.wanting(facts.provider, label);
  if (wanted === 0 && asked.length === 0) return;
  const coming = asked.length * settings.slots;
  const free = countFree(facts, label, settings);
  const lacking = wanted - free - coming;
  if (lacking <= 0)
    return withdrawSpare(facts, asked, settings, Math.floor(-lacking / settings.slots), draft);
  const after = facts.askAfter.get(label) ?? 0;
  if (after > facts.now) return lookAt(draft, after);
  const count = Math.min(ASK_AT_ONCE, Math.ceil(lacking / settings.slots));
  draft.actions.push({ type: "ask", label, count });
}

/** Free slots of a label, those being claimed included. */
function countFree({ view, backings, ageOf }: OwnerFacts, label: string, settings: SlotSettings): number {
  let free = 0;
  for (const { id, data } of backings) {
    const facts = view.slots.facts(id)!;
    if (data.label !== label || !facts.inUse) continue;
    if (closedBecause(facts, settings, ageOf(id, data.launched * 1000)) !== undefined) continue;
    free += freeSlots(facts, settings.slots).length;
  }
  return free;
}

/**
 * Withdraws requests that are not needed, newest first and after the grace time. A request that a launcher has accepted stays: its node is
 * adopted and kept for the grace time like any empty backing node.
 */
function withdrawSpare(
  { now, ageOf, agesTrusted }: OwnerFacts,
  asked: readonly RequestEntry[],
  settings: SlotSettings,
  spare: number,
  draft: Draft,
): void {
  let left = spare;
  for (const request of [...asked].reverse()) {
    if (left <= 0) return;
    if (request.record.state !== "requested") continue;
    left--;
    const at = now - ageOf(request.id, (request.record.stateTime ?? 0) * 1000) + settings.graceMs;
    if (at <= now && agesTrusted)
      draft.actions.push({ type: "withdraw", request, why: "nobody needs it any more" });
    else if (at > now) lookAt(draft, at);
  }
}

/** Opens, fails, drains and gives back backing nodes, and removes what deleted ones left. */
function planBackings(facts: OwnerFacts, draft: Draft): void {
  const { slots, unreadable } = facts.view;
  for (const backing of facts.backings) {
    const { id, data, entry } = backing;
    // Without a folder no slot can be claimed. One whose lock is missing is not ours, whatever its record says.
    if (entry.record.state === "in-use" && entry.contenders.length > 0 && !slots.folders.has(id)) {
      draft.actions.push({ type: "open", backing });
      continue;
    }
    if (slots.retired.has(id) && !data.failed) draft.actions.push({ type: "fail", backing });
    planEnd(facts, backing, draft);
  }
  const ours = new Set(facts.backings.map(({ id }) => id));
  for (const [id, provider] of slots.folders) {
    // A backing node with an unreadable record may still be there, so its folder stays.
    if (provider !== facts.provider || ours.has(id) || unreadable.nodes.has(id)) continue;
    if (slots.isEmpty(id)) draft.actions.push({ type: "close", backing: id });
    else recycle(facts, id, `its backing node ${id} is gone`, draft);
  }
}

/** Releases a backing node when it is empty and its time is over, or when it must not get new slots. */
function planEnd(facts: OwnerFacts, backing: Backing, draft: Draft): void {
  const { labels, now, ageOf, agesTrusted } = facts;
  const { slots } = facts.view;
  const { id, data, entry } = backing;
  const { state } = entry.record;
  if (state !== "in-use") {
    // An owner stored `used` and died before it released the lock. Or another client waited for the lock when the node was adopted, and
    // cannot work on the node before our contender is gone.
    if (entry.contenders.length === 0) return;
    const why = state === "used" ? "its return was interrupted" : `somebody set its state to ${state}`;
    if (slots.isEmpty(id)) draft.actions.push({ type: "release", backing, why });
    else recycle(facts, id, `its backing node ${id} gets no new slots: ${why}`, draft);
    return;
  }
  const settings = labels.get(data.label);
  const age = ageOf(id, data.launched * 1000);
  const closed = closedBecause(slots.facts(id)!, settings, age);
  const launched = now - age;
  // One millisecond later, when the age is above the limit and not equal to it.
  if (closed === undefined && settings !== undefined) lookAt(draft, launched + settings.maxAgeMs + 1);
  if (!slots.isEmpty(id)) {
    if (closed !== undefined)
      recycle(facts, id, `its backing node ${id} gets no new slots: ${closed}`, draft);
    return;
  }
  if (!agesTrusted) return;
  if (closed !== undefined) {
    draft.actions.push({ type: "release", backing, why: closed });
    return;
  }
  // `closed` is undefined, so the label is configured.
  const at = Math.max(facts.lastUsed(id) + settings!.graceMs, launched + settings!.minRetentionMs);
  if (at > now) lookAt(draft, at);
  else draft.actions.push({ type: "release", backing, why: "it is empty and grace-time is over" });
}

/** Deletes idle nodes on the backing node, which would keep it for ever. Nodes that a request has stay. */
function recycle({ view }: OwnerFacts, backing: string, why: string, draft: Draft): void {
  for (const node of view.slots.placedOn(backing).keys()) {
    const { record, contenders } = view.nodes.byId.get(node)!;
    if (record.state === "ready" && record.allocatedTo === null && contenders.length === 0)
      draft.actions.push({ type: "recycle", node, why });
  }
}

/** Compares claims with records. Every commit of Nodeyard changes both together; they differ only when another program changed one of them. */
function planClaims({ view, provider, backings }: OwnerFacts, draft: Draft): void {
  const { slots, nodes, unreadable } = view;
  const ours = new Set(backings.map(({ id }) => id));
  const stale = new Set<string>();
  for (const [backing, owner] of slots.folders) {
    if (owner !== provider && !ours.has(backing)) continue;
    for (const claim of slots.claimsOn(backing).values()) {
      if (claim.node === null || unreadable.nodes.has(claim.node)) continue;
      const record = nodes.byId.get(claim.node)?.record;
      // The record is what counts: a claim without one is dropped, and a record without a claim gets one.
      if (record?.provider === provider && agrees(claim, slotPlace(record))) continue;
      stale.add(claim.path);
      draft.actions.push({ type: "drop", claim });
    }
  }
  for (const id of nodes.byProvider.get(provider)) {
    const place = slotPlace(nodes.byId.get(id)!.record);
    if (place === undefined || !slots.placedOn(place.backing).has(id)) continue;
    const has = slots.claimsOf(id).some(({ backing }) => backing === place.backing);
    // A slot that is about to be freed is claimed afterwards.
    if (has || !slots.folders.has(place.backing) || stale.has(claimPath(place.backing, place.slot))) continue;
    draft.actions.push({ type: "reclaim", node: id });
  }
}

/** Paths of claims that name no node. Their slots stay taken until an operator deletes them, because a client may use them. */
export function claimsOfNoNode({ view, provider }: Pick<OwnerFacts, "view" | "provider">): readonly string[] {
  return [...view.slots.folders]
    .filter(([, owner]) => owner === provider)
    .flatMap(([backing]) => [...view.slots.claimsOn(backing).values()])
    .filter(({ node }) => node === null)
    .map(({ path }) => path);
}
