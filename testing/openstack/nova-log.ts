import { readFileSync, statSync } from "node:fs";
import type { OpenstackSite } from "./site.ts";

export interface NovaCalls {
  /**
   * `GET /servers/detail`, which only the driver calls: when the calls arrived and were answered, milliseconds since the epoch, in their
   * order.
   */
  readonly listings: readonly { readonly began: number; readonly at: number }[];
  readonly creates: number;
  /** Creates that were refused for quota. */
  readonly refused: number;
  readonly deletes: number;
  /** When creates that worked arrived, milliseconds since the epoch, in their order. */
  readonly arrivals: readonly number[];
  /** When nova's database stopped counting a server: from then on every call shows its quota as free. In their order. */
  readonly freed: readonly number[];
}

/** Written by plane/py/nodeyard_fake.py from within nova; seconds since the epoch. */
type Line =
  | {
      readonly call: string;
      readonly path: string;
      readonly began: number;
      readonly at: number;
      readonly status?: number;
    }
  | { readonly freed: string; readonly at: number };

/** What nova did for a project since the mark. */
export class NovaLog {
  readonly #path: string;
  #from = 0;

  constructor(site: OpenstackSite) {
    this.#path = site.log;
    this.mark();
  }

  mark(): void {
    this.#from = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }

  calls(): NovaCalls {
    const text = readFileSync(this.#path).subarray(this.#from).toString("utf8");
    const lines = text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Line]));
    const calls = lines.flatMap((line) => ("call" in line ? [line] : []));
    const count = (name: string, path: RegExp, status = /^2/) =>
      calls.filter((one) => one.call === name && path.test(one.path) && status.test(String(one.status)));
    const made = count("POST", /\/servers$/);
    const refused = count("POST", /\/servers$/, /^403$/);
    return {
      listings: count("GET", /\/servers\/detail$/, /./)
        .map(({ began, at }) => ({ began: began * 1_000, at: at * 1_000 }))
        .sort((a, b) => a.began - b.began),
      creates: made.length + refused.length,
      refused: refused.length,
      deletes: count("DELETE", /\/servers\/[^/]+$/).length,
      arrivals: inOrder(made.map(({ began }) => began)),
      freed: inOrder(lines.flatMap((line) => ("freed" in line ? [line.at] : []))),
    };
  }
}

function inOrder(seconds: readonly number[]): readonly number[] {
  return seconds.map((at) => at * 1_000).sort((a, b) => a - b);
}

/** How long freed quota stayed unused. */
export interface FreePlace {
  /** From when nova's database stopped counting a server, until a create took its quota; milliseconds. */
  readonly freeMs: number;
  /** Listings that showed it and were answered meanwhile. */
  readonly shown: number;
}

/** With a quota of `places` and a queue behind it, the k-th freed place is taken by the k-th create after the quota was full. */
export function freePlaces(
  { freed, arrivals, listings }: Pick<NovaCalls, "freed" | "arrivals" | "listings">,
  places: number,
): readonly FreePlace[] {
  return arrivals.slice(places, places + freed.length).map((taken, k) => {
    const shown = listings.filter(({ began, at }) => began >= freed[k]! && at <= taken).length;
    return { freeMs: taken - freed[k]!, shown };
  });
}
