import { LENT, type Lending } from "@nodeyard/driver-sliver/parts";
import type { Rspec } from "@nodeyard/sliver-protocol";

/** A machine that is divided into slots of one kind. */
export interface Places {
  /** Number of slots. */
  readonly places: number;
  /** The rspec of each slot. */
  readonly rspec: Readonly<Partial<Rspec>>;
}

/** Lending between slots: an empty slot lends its whole caps, but only once nothing of its last sliver is left. */
export function lendingOfPlaces({ places, rspec }: Places): Lending {
  const lent = LENT.filter((name) => (rspec[name] ?? 0) > 0);
  return {
    lent: () => lent,
    free: (slivers, ending) => {
      // Not below 0: a lower max-parallel-jobs leaves more slivers than slots until their nodes end.
      const free = Math.max(0, places - slivers.length - ending);
      return Object.fromEntries(lent.map((name) => [name, rspec[name]! * free]));
    },
  };
}
