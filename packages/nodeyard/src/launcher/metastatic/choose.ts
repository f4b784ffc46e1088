import type { SlotPlace } from "../../operations/index.ts";
import type { NodeEntry } from "../../view/index.ts";
import { claimPath } from "./claims.ts";
import type { MetastaticLabelOwn } from "./config.ts";
import type { Backing, SlotIndex } from "./slot-index.ts";

export interface ChosenSlot extends SlotPlace {
  /** The backing node as it was when it was chosen: by now it may take no more, and the claim demands that version. */
  readonly node: NodeEntry;
}

/** How long ago an instant in the record of a node or request was, by id, milliseconds. */
export type AgeOf = (id: string, instant: number) => number;

/** Why a backing node takes no more slots, though those that it has go on; undefined: it takes some. */
export function closedBecause(
  book: SlotIndex,
  backing: Backing,
  settings: MetastaticLabelOwn | undefined,
  ageOf: AgeOf,
): string | undefined {
  if (backing.data.failed) return "it has failed";
  if (book.claims.retired.has(backing.id)) return "it is retired";
  if (settings === undefined) return `label ${backing.data.label} is no longer in the configuration`;
  if (ageOf(backing.id, backing.data.launched * 1000) > settings.maxAgeMs) return "it is older than max-age";
  return undefined;
}

/** Slots that a backing node offers: a label that was cut down since offers fewer. */
export function offered({ data }: Backing, settings: MetastaticLabelOwn): number {
  return Math.min(data.slots, settings.slots);
}

/**
 * The slot that the next node of a label gets: the lowest free one of the oldest backing node that takes any. Pure. `taken` has
 * the claims that are under way.
 */
export function chooseSlot(
  book: SlotIndex,
  label: string,
  settings: MetastaticLabelOwn,
  ageOf: AgeOf,
  taken: ReadonlySet<string>,
): ChosenSlot | undefined {
  for (const backing of book.ofLabel(label)) {
    if (!takesSlots(book, backing, settings, ageOf)) continue;
    const slots = offered(backing, settings);
    if (book.claims.of(backing.id).size >= slots) continue;
    for (let slot = 0; slot < slots; slot++) {
      if (!book.occupied(backing.id, slot) && !taken.has(claimPath(backing.id, slot)))
        return { backing: backing.id, slot, node: backing.entry };
    }
  }
  return undefined;
}

/** Free slots of a label, those being claimed included. */
export function freeSlots(
  book: SlotIndex,
  label: string,
  settings: MetastaticLabelOwn,
  ageOf: AgeOf,
): number {
  let free = 0;
  for (const backing of book.ofLabel(label)) {
    if (
      backing.entry.record.state !== "in-use" ||
      closedBecause(book, backing, settings, ageOf) !== undefined
    )
      continue;
    for (let slot = 0; slot < offered(backing, settings); slot++)
      if (!book.occupied(backing.id, slot)) free++;
  }
  return free;
}

/** Its folder is made once its lock was seen to be ours: a record that only says so takes nothing. */
function takesSlots(book: SlotIndex, backing: Backing, settings: MetastaticLabelOwn, ageOf: AgeOf): boolean {
  const { record, contenders } = backing.entry;
  return (
    record.state === "in-use" &&
    contenders.length > 0 &&
    book.claims.folders.has(backing.id) &&
    closedBecause(book, backing, settings, ageOf) === undefined
  );
}
