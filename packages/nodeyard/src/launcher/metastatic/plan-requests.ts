import type { RequestEntry } from "../../view/index.ts";
import { freeSlots } from "./choose.ts";
import type { MetastaticLabelOwn } from "./config.ts";
import { type Draft, lookAt, type OwnerFacts } from "./draft.ts";

/** Requests written at once, at most: the rest follows when these are there. */
const ASK_AT_ONCE = 32;
/** A failed request stays this long, so that every launcher that waits for it sees how it ended. */
const SHOW_FAILED_MS = 1_000;

/** The label that a backing request is for: its own note, or else what shares the backing label (as Nodepool's have none). */
export function labelOf(
  request: RequestEntry["record"],
  labels: ReadonlyMap<string, MetastaticLabelOwn>,
): string | undefined {
  const data = request.requestorData as { nodeyard?: { label?: unknown } } | null;
  const noted = typeof data === "object" && data !== null ? data.nodeyard?.label : undefined;
  if (typeof noted === "string") return noted;
  for (const [label, { backingLabel }] of labels) if (backingLabel === request.nodeTypes[0]) return label;
  return undefined;
}

/** Asks for what the nodes without a slot lack, and takes back what nobody needs. */
export function planRequests(facts: OwnerFacts, draft: Draft): void {
  const open = new Map<string, RequestEntry[]>();
  for (const request of facts.requests) {
    const label = labelOf(request.record, facts.labels);
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

function endFailed({ now, ageOf }: OwnerFacts, request: RequestEntry, draft: Draft): void {
  const at = now - ageOf(request.id, (request.record.stateTime ?? 0) * 1000) + SHOW_FAILED_MS;
  if (at > now) lookAt(draft, at);
  else draft.actions.push({ type: "withdraw", request, why: "it failed" });
}

/** Asked for under another configuration. One that is being answered is adopted then, and given back at once. */
function endForeign(request: RequestEntry, label: string, draft: Draft): void {
  const { state } = request.record;
  if (state === "requested") draft.actions.push({ type: "withdraw", request, why: "its label is gone" });
  else if (state === "fulfilled") draft.actions.push({ type: "adopt", request, label });
}

function balance(
  facts: OwnerFacts,
  label: string,
  settings: MetastaticLabelOwn,
  asked: readonly RequestEntry[],
  draft: Draft,
): void {
  const wanted = facts.book.wanting(label);
  if (wanted === 0 && asked.length === 0) return;
  const coming = asked.length * settings.slots;
  const free = freeSlots(facts.book, label, settings, facts.ageOf);
  const lacking = wanted - free - coming;
  if (lacking <= 0)
    return withdrawSpare(facts, asked, settings, Math.floor(-lacking / settings.slots), draft);
  const after = facts.askAfter.get(label) ?? 0;
  if (after > facts.now) return lookAt(draft, after);
  const count = Math.min(ASK_AT_ONCE, Math.ceil(lacking / settings.slots));
  draft.actions.push({ type: "ask", label, count });
}

/** One that is being answered is let: its node is adopted, and kept for the grace time as any empty one. */
function withdrawSpare(
  { now, ageOf, agesTrusted }: OwnerFacts,
  asked: readonly RequestEntry[],
  settings: MetastaticLabelOwn,
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
