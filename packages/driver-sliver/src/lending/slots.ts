import type { Rspec } from "@nodeyard/sliver-protocol";
import type { Lending } from "./document.ts";
import { LENT } from "./rule.ts";

/** A machine that is cut into places of one kind. */
export interface Places {
  /** As many slivers as it is for. */
  readonly places: number;
  /** What each of them is given. */
  readonly rspec: Readonly<Partial<Rspec>>;
}

/** What a place has the whole place lends: as long as something of its last sliver is left, it is not free. */
export function lendingOfPlaces({ places, rspec }: Places): Lending {
  const lent = LENT.filter((name) => (rspec[name] ?? 0) > 0);
  return {
    lent: () => lent,
    free: (slivers, ending) => {
      const free = Math.max(0, places - slivers.length - ending);
      return Object.fromEntries(lent.map((name) => [name, rspec[name]! * free]));
    },
  };
}
