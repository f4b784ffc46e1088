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

export interface Contender {
  /** The child's whole name. */
  readonly name: string;
  /** What comes before the sequence; fixed for the life of one lock attempt, so a lost reply can be looked up by it. */
  readonly prefix: string;
  /** Ten digits, perhaps after a "-". */
  readonly sequence: string;
}

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

/** The contender that a child's name stands for; undefined for children that are not in the line. */
export function parseContender(name: string): Contender | undefined {
  const sequence = CONTENDER.exec(name)?.[1];
  if (sequence === undefined) return undefined;
  return { name, prefix: name.slice(0, -sequence.length), sequence };
}

/** The contenders among the children of a lock parent, holder first. */
export function sortContenders(names: Iterable<string>): Contender[] {
  const found: Contender[] = [];
  for (const name of names) {
    const contender = parseContender(name);
    if (contender !== undefined) found.push(contender);
  }
  return found.sort(compare);
}

/** Name of the child that holds the lock; undefined when nobody does. */
export function holderOf(names: Iterable<string>): string | undefined {
  let first: Contender | undefined;
  for (const name of names) {
    const contender = parseContender(name);
    if (contender !== undefined && (first === undefined || compare(contender, first) < 0)) first = contender;
  }
  return first?.name;
}

/** Equal sequences cannot come from one counter; the name decides so that the order is total all the same. */
function compare(a: Contender, b: Contender): number {
  if (a.sequence !== b.sequence) return a.sequence < b.sequence ? -1 : 1;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
