/** What is known of one way to buy the nodes of a label, or of all that a nodeset would be bought as (`together`). */
export interface Figures {
  /** All of it can be had now within the limits of pool, provider and tenant. */
  readonly fits: boolean;
  /** Others use too much of the quota for it: it does not fit when all of our own nodes are gone. */
  readonly foreign: boolean;
  /** Of the configuration. */
  readonly weight: number;
  /** Per hour; null: unknown. */
  readonly price: number | null;
  /** Launches that failed in a row, as its breaker counts them. */
  readonly failures: number;
  /** Whether the cloud said of late that the zone has room. */
  readonly said: boolean;
  /** How many more the limits leave; Infinity: nothing limits them. */
  readonly room: number;
  /** Nodes of the pool in its zone. */
  readonly load: number;
  /** From `building` to `ready`, seen lately, milliseconds; null: none was seen. */
  readonly readyMs: number | null;
  /** Its place in the file, which decides where all else is equal. */
  readonly index: number;
}

/**
 * The groups of the score, each decides only where the ones before it are equal (docs/design/places.md). Lower is better. A price that is
 * unknown comes last, since nobody knows that it is low; a time that is unknown comes first, so that it becomes known.
 */
const GROUPS: readonly ((one: Figures) => number)[] = [
  ({ fits }) => (fits ? 0 : 1),
  ({ foreign }) => (foreign ? 1 : 0),
  ({ weight }) => -weight,
  ({ price }) => price ?? Number.POSITIVE_INFINITY,
  ({ failures }) => failures,
  ({ said }) => (said ? 0 : 1),
  ({ room }) => -room,
  ({ load }) => load,
  ({ readyMs }) => readyMs ?? 0,
  ({ index }) => index,
];

/** Negative: `a` is the better one. A total order, since no two offerings of a label have one index in one zone. */
export function compareFigures(a: Figures, b: Figures): number {
  for (const group of GROUPS) {
    const [x, y] = [group(a), group(b)];
    // No difference, because two infinities have none.
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}

/** The figures of a nodeset: what is counted adds up, and of what limits the least counts. */
export function together(all: readonly Figures[]): Figures {
  const sum = (of: (one: Figures) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    fits: all.every(({ fits }) => fits),
    foreign: all.some(({ foreign }) => foreign),
    weight: sum(({ weight }) => weight),
    price: all.some(({ price }) => price === null) ? null : sum(({ price }) => price ?? 0),
    failures: sum(({ failures }) => failures),
    said: all.every(({ said }) => said),
    room: Math.min(...all.map(({ room }) => room)),
    load: Math.max(...all.map(({ load }) => load)),
    readyMs: all.some(({ readyMs }) => readyMs === null)
      ? null
      : Math.max(...all.map(({ readyMs }) => readyMs ?? 0)),
    index: sum(({ index }) => index),
  };
}
