/**
 * Names and order of lock contenders. They match kazoo's `Lock`, so that Python processes and Nodeyard compete for the
 * same lock under one lock parent.
 *
 * A contender is a sequential child `<anything>__lock__<sequence>`; other children of a lock parent are ignored. The
 * sequence has ten digits, with a leading "-" after the parent's 32-bit counter has overflowed. kazoo compares sequences
 * as strings. This code must do the same: two clients with different orders would both believe that they hold the lock.
 */
const INFIX = "__lock__";
const CONTENDER = /__lock__(-?[0-9]{10})$/;
const HEX_32 = /^[0-9a-f]{32}$/;

/**
 * The name prefix for a contender's sequential create: `<32 hex digits>__lock__`.
 * Throws a RangeError when `uuid` is not a UUID (with or without dashes).
 */
export function contenderPrefix(uuid: string): string {
  const hex = uuid.replaceAll("-", "").toLowerCase();
  if (!HEX_32.test(hex))
    throw new RangeError(`${JSON.stringify(uuid)} is not a UUID, which a contender needs`);
  return hex + INFIX;
}

/** The names of the contenders among the children of a lock parent, the holder first. */
export function sortContenders(names: Iterable<string>): string[] {
  const found: { readonly name: string; readonly sequence: string }[] = [];
  for (const name of names) {
    const sequence = CONTENDER.exec(name)?.[1];
    if (sequence !== undefined) found.push({ name, sequence });
  }
  // One counter never yields equal sequences. The comparison of names makes the order total even for damaged data.
  found.sort((a, b) => order(a.sequence, b.sequence) || order(a.name, b.name));
  return found.map(({ name }) => name);
}

/** Name of the child that holds the lock; undefined when there is no contender. */
export function holderOf(names: Iterable<string>): string | undefined {
  return sortContenders(names)[0];
}

function order(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
