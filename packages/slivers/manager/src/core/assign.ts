import { defined } from "@nodeyard/runtime";
import { freeDevices, heldDevices } from "./devices.ts";
import { type Observed, wanted } from "./plan.ts";
import type { Local, SliverRecord, State } from "./record.ts";
import { type Doing, NOTHING, Spares } from "./spares.ts";

/** What of the machine slivers get for themselves. */
export interface Places {
  readonly highestIndex: number;
  /** Devices by class; the files of one are separated by blanks. Absent: none. */
  readonly devices?: Readonly<Record<string, readonly string[]>>;
  /** Slivers that are kept ready for the next documents. Default 0. */
  readonly spares?: number;
}

/**
 * Assigns an index to each sliver that needs one: that of a spare which it becomes, or the lowest that neither a record nor a sliver on the
 * machine has. After a lost store, a running sliver with the same name and generation is adopted.
 */
export function assign(
  state: State,
  observed: readonly Observed[],
  { highestIndex, devices = {}, spares: count = 0 }: Places,
  doing: Doing = NOTHING,
): { state: State; unplaced: readonly string[] } {
  const records = new Map(state.records);
  let { nextIncarnation } = state;
  // After a lost store the machine may have incarnations that no record names. Their numbers must not be used again.
  for (const { incarnation } of observed) nextIncarnation = Math.max(nextIncarnation, incarnation + 1);
  const spares = new Spares(state.spares, count, observed, doing);
  const taken = new Set<number>();
  for (const { local } of [...records.values(), ...state.spares])
    if (local.index !== undefined) taken.add(local.index);
  const free = observed.filter(({ index }) => !taken.has(index));
  for (const { index } of observed) taken.add(index);
  let candidate = 1;
  const lowest = (): number | undefined => {
    while (taken.has(candidate)) candidate++;
    return candidate > highestIndex ? undefined : candidate;
  };

  // Before new slivers get a place, because an adopted sliver keeps the place that it has.
  for (const record of state.records.values())
    if (record.local.adopt !== undefined) records.set(record.name, adopted(record, free));

  const unplaced: string[] = [];
  const held = heldDevices(records, observed);
  let freed = state.safe
    ? Number.POSITIVE_INFINITY
    : endingPlaces(records, spares.all, observed, doing, highestIndex);
  /** A place of its own; undefined: later, when a device is free. */
  const own = (record: SliverRecord): Partial<Local> | undefined => {
    const index = lowest();
    const all = index === undefined ? undefined : freeDevices(record.devices, devices, held);
    if (index === undefined || all === undefined) {
      // Ends take many syncs: without the count each of them would give up one more spare for the same sliver.
      if (index === undefined && freed-- <= 0) spares.drop();
      if (index === undefined || freeDevices(record.devices, devices, []) === undefined)
        unplaced.push(record.name);
      return undefined;
    }
    held.push(...all);
    taken.add(index);
    // After a lost store the counter may be behind the incarnations on the machine.
    const incarnation = isUsed(record, observed) ? nextIncarnation++ : record.local.incarnation;
    return { index, incarnation, ...(all.length === 0 ? {} : { devices: all }) };
  };
  // The oldest records first, so that with too few places the later ones have none.
  for (const record of [...records.values()].sort((a, b) => a.local.incarnation - b.local.incarnation)) {
    if (wanted(record) !== true || record.local.index !== undefined) continue;
    const place = spares.take(record) ?? own(record);
    if (place === undefined) continue;
    records.set(record.name, { ...record, local: { ...record.local, ...place } });
    spares.add(record, nextIncarnation++);
  }
  for (const one of spares.outdated) spares.add(one, nextIncarnation++);
  spares.place(() => {
    const index = lowest();
    if (index !== undefined) taken.add(index);
    return index;
  });
  return { state: { ...state, nextIncarnation, records, spares: spares.all }, unplaced };
}

/** The record with the place, the incarnation and the devices of the running sliver that it adopts, if there is one. */
function adopted(record: SliverRecord, free: readonly Observed[]): SliverRecord {
  const { adopt: _, ...local } = record.local;
  const found = free.find(({ name, generation }) => name === record.name && generation === record.generation);
  if (found === undefined) return { ...record, local };
  const { index, incarnation, devices } = found;
  const held = defined({ devices });
  return { ...record, local: { ...local, index, incarnation, ...held } };
}

/**
 * How many indexes become free without a decision of this sync: what has them belongs to no record or spare, so the plan destroys it.
 * One whose task failed may take long or for ever, so a sliver does not wait for it.
 */
function endingPlaces(
  records: State["records"],
  spares: readonly SliverRecord[],
  observed: readonly Observed[],
  doing: Doing,
  highestIndex: number,
): number {
  const owned = new Set([...records.values(), ...spares].map(({ local }) => local.index));
  return observed.filter(
    ({ index, incarnation }) => index <= highestIndex && !owned.has(index) && !doing.hasFailed(incarnation),
  ).length;
}

/** Whether something on the machine has the record's incarnation: an earlier life that is not removed yet. */
function isUsed({ local }: SliverRecord, observed: readonly Observed[]): boolean {
  return observed.some(({ incarnation }) => incarnation === local.incarnation);
}
