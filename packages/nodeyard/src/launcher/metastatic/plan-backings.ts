import { closedBecause } from "./choose.ts";
import { type Draft, lookAt, type OwnerFacts } from "./draft.ts";
import type { Backing } from "./slot-index.ts";

/** Opens, fails, drains and gives back backing nodes, and clears away after those that are gone. */
export function planBackings(facts: OwnerFacts, draft: Draft): void {
  const { book } = facts;
  for (const backing of book.backings.values()) {
    const { id, data, entry } = backing;
    if (entry.record.state === "in-use" && entry.contenders.length > 0 && !book.claims.folders.has(id)) {
      draft.actions.push({ type: "open", backing });
      continue;
    }
    if (book.claims.retired.has(id) && !data.failed) draft.actions.push({ type: "fail", backing });
    planEnd(facts, backing, draft);
  }
  for (const [id, provider] of book.claims.folders) {
    if (provider !== facts.provider || book.backings.has(id) || book.unreadable.has(id)) continue;
    if (book.isEmpty(id)) draft.actions.push({ type: "close", backing: id });
    else recycle(facts, id, `its backing node ${id} is gone`, draft);
  }
}

function planEnd(facts: OwnerFacts, backing: Backing, draft: Draft): void {
  const { book, labels, now, ageOf, agesTrusted } = facts;
  const { id, data, entry } = backing;
  const { state } = entry.record;
  if (state !== "in-use") {
    // Someone stored `used` and died before the lock went; or a person who waited for the lock when we took the node got it first,
    // and nobody can do what he wants before our contender is gone.
    if (entry.contenders.length === 0) return;
    const why = state === "used" ? "its return was interrupted" : `somebody set its state to ${state}`;
    if (book.isEmpty(id)) draft.actions.push({ type: "release", backing, why });
    else recycle(facts, id, `its backing node ${id} gets no new slots: ${why}`, draft);
    return;
  }
  const settings = labels.get(data.label);
  const closed = closedBecause(book, backing, settings, ageOf);
  const launched = now - ageOf(id, data.launched * 1000);
  if (closed === undefined && settings !== undefined) noteAge(launched + settings.maxAgeMs + 1, now, draft);
  if (!book.isEmpty(id)) {
    if (closed !== undefined)
      recycle(facts, id, `its backing node ${id} gets no new slots: ${closed}`, draft);
    return;
  }
  if (!agesTrusted) return;
  if (closed !== undefined) {
    draft.actions.push({ type: "release", backing, why: closed });
    return;
  }
  const at = Math.max(facts.lastUsed(id) + settings!.graceMs, launched + settings!.minRetentionMs);
  if (at > now) lookAt(draft, at);
  else if (agesTrusted)
    draft.actions.push({ type: "release", backing, why: "it is empty and grace-time is over" });
}

function noteAge(at: number, now: number, draft: Draft): void {
  if (Number.isFinite(at) && at > now) lookAt(draft, at);
}

/** Nodes that nobody has been given would keep it for ever; who has one keeps it. */
function recycle({ book }: OwnerFacts, backing: string, why: string, draft: Draft): void {
  for (const node of book.placedOn(backing).keys()) {
    const { record, contenders } = book.ends.get(node)!.entry;
    if (record.state === "ready" && record.allocatedTo === null && contenders.length === 0)
      draft.actions.push({ type: "recycle", node, why });
  }
}
