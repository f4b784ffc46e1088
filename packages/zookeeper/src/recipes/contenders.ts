/**
 * Names and order of lock contenders, as kazoo's `Lock` makes and reads them, so that Python processes and ours queue
 * in one line under one lock parent.
 *
 * A contender is a sequential child `<anything>__lock__<sequence>`; other children of a lock parent are not in the
 * line. The sequence is ten digits, with a leading "-" once the parent's 32-bit counter has overflowed, and kazoo
 * compares it as a string: so do we, since two orders would mean two holders.
 */
const INFIX = "__lock__";
const CONTENDER = /__lock__(-?[0-9]{10})$/;
const HEX_32 = /^[0-9a-f]{32}$/;

/**
 * The name that a sequential create is given: `<32 hex digits>__lock__`.
 * Throws a RangeError when `uuid` is no UUID (with or without dashes).
 */
export function contenderPrefix(uuid: string): string {
  const hex = uuid.replaceAll("-", "").toLowerCase();
  if (!HEX_32.test(hex))
    throw new RangeError(`${JSON.stringify(uuid)} is not a UUID, which a contender needs`);
  return hex + INFIX;
}

/** The names of contenders among the children of a lock parent, holder first. */
export function sortContenders(names: Iterable<string>): string[] {
  const found: { readonly name: string; readonly sequence: string }[] = [];
  for (const name of names) {
    const sequence = CONTENDER.exec(name)?.[1];
    if (sequence !== undefined) found.push({ name, sequence });
  }
  // Equal sequences cannot come from one counter; the name decides so that the order is total all the same.
  found.sort((a, b) => order(a.sequence, b.sequence) || order(a.name, b.name));
  return found.map(({ name }) => name);
}

/** Name of the child that holds the lock; undefined when nobody does. */
export function holderOf(names: Iterable<string>): string | undefined {
  return sortContenders(names)[0];
}

function order(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
