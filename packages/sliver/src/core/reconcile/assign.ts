import type { SliverRecord, State } from "../record.ts";
import type { Observed } from "./observed.ts";

/** True when the machine should have this sliver; undefined: as it is. */
export function wanted({ kind, instantiation, local }: SliverRecord): boolean | undefined {
  if (kind === "controller") return false;
  if (instantiation === "plc-instantiated") return true;
  return instantiation === "delegated" ? local.desired : undefined;
}

/**
 * Gives an index to what is to be made and has none: the lowest that neither a record nor anything found on the machine
 * has. After a lost store, what is found and is plainly the same sliver is taken over as it runs.
 */
export function assign(
  state: State,
  observed: readonly Observed[],
  highestIndex: number,
): { state: State; unplaced: readonly string[] } {
  const records = new Map(state.records);
  let { nextIncarnation } = state;
  for (const { incarnation } of observed) nextIncarnation = Math.max(nextIncarnation, incarnation + 1);
  const taken = new Set<number>();
  for (const { local } of records.values()) if (local.index !== undefined) taken.add(local.index);
  const free = observed.filter(({ index }) => !taken.has(index));
  for (const { index } of observed) taken.add(index);

  for (const record of state.records.values()) {
    const { adopt, ...local } = record.local;
    if (adopt === undefined) continue;
    const found = free.find(
      ({ name, generation }) => name === record.name && generation === record.generation,
    );
    const place = found === undefined ? {} : { index: found.index, incarnation: found.incarnation };
    records.set(record.name, { ...record, local: { ...local, ...place } });
  }

  const unplaced: string[] = [];
  let candidate = 1;
  for (const record of [...records.values()].sort((a, b) => a.local.incarnation - b.local.incarnation)) {
    if (wanted(record) !== true || record.local.index !== undefined) continue;
    while (taken.has(candidate)) candidate++;
    if (candidate > highestIndex) {
      unplaced.push(record.name);
      continue;
    }
    taken.add(candidate);
    // A lost store may have counted less far than what is found.
    const incarnation = isUsed(record, observed) ? nextIncarnation++ : record.local.incarnation;
    records.set(record.name, { ...record, local: { ...record.local, index: candidate, incarnation } });
  }
  return { state: { ...state, nextIncarnation, records }, unplaced };
}

function isUsed({ local }: SliverRecord, observed: readonly Observed[]): boolean {
  return observed.some(({ incarnation }) => incarnation === local.incarnation);
}
