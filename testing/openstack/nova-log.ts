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
}

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
    const created = count(/"POST \/v2\.1\/servers HTTP\/1\.1" status: 2/g);
    const refused = count(/"POST \/v2\.1\/servers HTTP\/1\.1" status: 403/g);
    return {
      reads: count(/"GET \/v2\.1\/servers\/detail[^"]*" status/g),
      creates: created + refused,
      refused,
      deletes: count(/"DELETE \/v2\.1\/servers\/[^"]*" status: 2/g),
    };
  }
}
