import { type Answer, encodeAnswer, type Testimony } from "./records.ts";

/** An answer, bytes: a fleet's answers lie in the tree together, and a znode holds a mebibyte at best. */
export const MOST_BYTES = 256 * 1024;

/**
 * The answer as at most `most` bytes. Parts that do not fit are left out and counted: first the oldest events, because the youngest say
 * more about now, then pools from the end, and then clients of tenants from the end: there may be as many as there are people.
 */
export function fit(answer: Omit<Answer, "v" | "leftOut">, most = MOST_BYTES): Uint8Array {
  const { events, pools, tenants } = answer.testimony;
  const clients = tenants?.filter(({ client }) => client !== null).length ?? 0;
  const make = (keptEvents: number, keptPools: number, keptClients = clients): Uint8Array => {
    let left = keptClients;
    const testimony: Testimony = {
      ...answer.testimony,
      events: events.slice(events.length - keptEvents),
      pools: pools.slice(0, keptPools),
      ...(tenants && { tenants: tenants.filter(({ client }) => client === null || left-- > 0) }),
    };
    const leftOut = {
      ...{ events: events.length - keptEvents, pools: pools.length - keptPools },
      ...(keptClients < clients && { clients: clients - keptClients }),
    };
    return encodeAnswer({ ...answer, testimony, leftOut });
  };
  const whole = make(events.length, pools.length);
  if (whole.length <= most) return whole;
  const fitsWith = (keptPools: number) =>
    largest(events.length, (kept) => make(kept, keptPools).length <= most);
  const kept = fitsWith(pools.length);
  if (kept !== undefined) return make(kept, pools.length);
  const keptPools = largest(pools.length, (some) => make(0, some).length <= most);
  if (keptPools !== undefined) return make(0, keptPools);
  return make(0, 0, largest(clients, (some) => make(0, 0, some).length <= most) ?? 0);
}

/** The largest of 0..most for which `holds`, which is true up to some number and false from there; undefined: not even 0. */
function largest(most: number, holds: (count: number) => boolean): number | undefined {
  if (!holds(0)) return undefined;
  let [low, high] = [0, most];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
