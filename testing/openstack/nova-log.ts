import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { OpenstackSite } from "./site.ts";

export interface NovaCalls {
  /** `GET /servers/detail`: only the driver lists so. */
  readonly reads: number;
  readonly creates: number;
  /** Creates that were refused for quota. */
  readonly refused: number;
  readonly deletes: number;
  /** When creates that worked arrived, milliseconds since the epoch. */
  readonly arrivals: readonly number[];
}

/** The log's time is that of the answer. */
const CREATED = /^(\S+ \S+) .*"POST \/v2\.1\/servers HTTP\/1\.1" status: 2\d\d len: \d+ time: ([\d.]+)/gm;

/** What nova's own log says it was asked since the mark. */
export class NovaLog {
  readonly #path: string;
  #from = 0;

  constructor(site: OpenstackSite) {
    this.#path = join(site.folder, "log", "nova-api.log");
    this.mark();
  }

  mark(): void {
    this.#from = statSync(this.#path).size;
  }

  calls(): NovaCalls {
    const text = readFileSync(this.#path).subarray(this.#from).toString("utf8");
    const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
    const arrivals = [...text.matchAll(CREATED)].map(
      ([, at, seconds]) => Date.parse(`${at!.replace(" ", "T")}Z`) - Number(seconds) * 1_000,
    );
    const refused = count(/"POST \/v2\.1\/servers HTTP\/1\.1" status: 403/g);
    return {
      reads: count(/"GET \/v2\.1\/servers\/detail[^"]*" status/g),
      creates: arrivals.length + refused,
      refused,
      deletes: count(/"DELETE \/v2\.1\/servers\/[^"]*" status: 2/g),
      arrivals: arrivals.sort((a, b) => a - b),
    };
  }
}
