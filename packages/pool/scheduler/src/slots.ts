import type { SlotSettings } from "@nodeyard/driver";
import { metastaticProviderOf, type RequestRecord, type SlotPlace } from "@nodeyard/model";
import type { Moment } from "@nodeyard/runtime";
import type { BackingFacts, RequestEntry } from "@nodeyard/view";
import { lineOf, type PlannedSlot, type Want } from "./slot-index.ts";
import type { State, Turn } from "./state.ts";
import type { Waiting } from "./waits.ts";

/** The label that a backing request is for: its own note, or else what shares the backing label (as Nodepool's have none). */
export function slotLabelOf(
  request: RequestRecord,
  labels: ReadonlyMap<string, SlotSettings>,
): string | undefined {
  const data = request.requestorData as { nodeyard?: { label?: unknown } } | null;
  const noted = typeof data === "object" && data !== null ? data.nodeyard?.label : undefined;
  if (typeof noted === "string") return noted;
  for (const [label, { backingLabel }] of labels) if (backingLabel === request.nodeTypes[0]) return label;
  return undefined;
}

/** What is known of a backing node changed. */
export function onBacking(state: State, id: string, after: BackingFacts | undefined): void {
  wakeLine(state, state.slots.set(id, after));
}

/** A slot for a launch that is accepted now, unless others wait for one; undefined: it has to wait, or needs none. */
export function planSlot(
  state: State,
  turn: Turn,
  provider: string,
  label: string,
  request: Pick<Waiting, "id" | "record">,
): PlannedSlot | undefined {
  const settings = state.policy.providers.get(provider)?.slots?.get(label);
  const line = lineOf({ provider, label });
  // Launches that wait come first, so a new request gets no slot while there is a line.
  if (settings === undefined || state.waits.line("slot", line).size > 0) return undefined;
  return state.slots.promise({ provider, label }, settings, momentOf(state, turn), request);
}

/** A launch has no slot: it waits for one at its request's place, and no newcomer is served before it. */
export function onSlotWanted(state: State, turn: Turn, request: string, want: Want): void {
  const entry = state.requests.entry(request);
  // Its launch must not be tried again, since nobody would get the node.
  if (entry === undefined) return refuseSlot(turn, want.node, `request ${request}: it is gone`, true);
  if (!isServed(state, want.provider)) return refuseSlot(turn, want.node, notServed(want.provider));
  const line = lineOf(want);
  state.waits.join("slot", line, state.slots.want(want, entry));
  wakeLine(state, line);
}

/** A launch waits for a slot no longer. */
export function onSlotLeft(state: State, node: string): void {
  const left = state.slots.unwant(node);
  if (left?.last === true) state.waits.leave("slot", left.line, left.waiter);
}

/** A promised slot was not claimed. */
export function onSlotLost(state: State, place: SlotPlace): void {
  wakeLine(state, state.slots.lost(place));
}

/** The handler of the request has ended, and its launches with it. */
export function forgetSlots(state: State, request: string): void {
  for (const { node } of state.slots.wanted(request)) onSlotLeft(state, node);
  for (const line of state.slots.forget(request)) wakeLine(state, line);
}

/** Launches of a request that is gone wait for nothing; as many as a backing request would have served lose their attempt with it. */
export function onSlotRequest(
  state: State,
  turn: Turn,
  id: string,
  before: RequestEntry | undefined,
  after: RequestEntry | undefined,
): void {
  if (after === undefined) {
    for (const { node } of state.slots.wanted(id)) {
      onSlotLeft(state, node);
      refuseSlot(turn, node, `request ${id}: it is gone`, true);
    }
    return;
  }
  if (after.record.state !== "failed" || before?.record.state === "failed") return;
  const provider = metastaticProviderOf(after.record.requestor);
  const labels = state.policy.providers.get(provider ?? "")?.slots;
  const label = labels && slotLabelOf(after.record, labels);
  if (provider === undefined || labels === undefined || label === undefined) return;
  const line = lineOf({ provider, label });
  // Otherwise they would wait for a backing node that nobody makes, until their own time is over.
  for (let count = labels.get(label)?.slots ?? 0; count > 0; count--) {
    const want = firstIn(state, line);
    if (want === undefined) return;
    onSlotLeft(state, want.node);
    refuseSlot(turn, want.node, `backing node failed: nobody could serve request ${id}`);
  }
}

/** Pools came or went, or labels are cut in another way. */
export function onSlotPolicy(state: State): void {
  for (const line of state.waits.names("slot")) wakeLine(state, line);
}

/** Gives slots to the first in line, for as long as there are any. */
export function serveSlots(state: State, turn: Turn, line: string): void {
  for (let want = firstIn(state, line); want !== undefined; want = firstIn(state, line)) {
    const { node, provider, label } = want;
    const settings = state.policy.providers.get(provider)?.slots?.get(label);
    if (!isServed(state, provider)) refuseSlot(turn, node, notServed(provider));
    else {
      const request = state.waits.line("slot", line).at(0)!;
      const slot = settings && state.slots.promise(want, settings, momentOf(state, turn), request);
      if (slot === undefined) return;
      turn.actions.push({ type: "slot", node, slot });
    }
    onSlotLeft(state, node);
  }
}

/** The launch that is served next: any one of the first request, because its launches are alike. */
function firstIn(state: State, line: string): Want | undefined {
  const first = state.waits.line("slot", line).at(0);
  return first && state.slots.wanted(first.id, line)[0];
}

/** `gone`: the request is, so the launch ends without counting as a failed one. */
function refuseSlot(turn: Turn, node: string, why: string, gone = false): void {
  turn.actions.push({ type: "slot", node, refused: { why, gone } });
}

/** Who serves a provider without a pool of ours does not see our claims: launchers of another kind keep theirs in memory. */
function isServed(state: State, provider: string): boolean {
  for (const { policy } of state.pools.values()) if (policy.provider === provider) return true;
  return false;
}

function notServed(provider: string): string {
  return `provider ${provider} is no longer served by this launcher`;
}

/** Lines without a launch are not looked at. */
function wakeLine(state: State, line: string | undefined): void {
  if (line !== undefined && state.waits.line("slot", line).size > 0) state.todo.slots.add(line);
}

function momentOf({ agesTrusted: trusted }: State, { now, steady }: Turn): Moment {
  return { now, steady, trusted };
}
