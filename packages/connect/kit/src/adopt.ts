import { z } from "zod";
import type { ConnectorParts } from "./kind.ts";
import { RunnerPool, type RunnerSource, SURPLUS } from "./runners.ts";

/** What the lease of a runner says to the next process. A name is the connector's and 48 random bits. */
const mark = z.object({
  connector: z.string(),
  key: z.string(),
  runner: z.string().regex(/^[a-z][a-z0-9-]*-[0-9a-f]{12}$/),
});

/** The pools of a connector, beside those of its runners that are of none any more, since a rule of its file was changed. */
export class RunnerPools {
  readonly #pools: readonly RunnerPool[];
  readonly #system: string;
  readonly #parts: ConnectorParts;
  /** None is wanted, so each ends as soon as it has no job. */
  readonly #former: RunnerPool;

  constructor(
    pools: readonly RunnerPool[],
    system: string,
    remove: RunnerSource["remove"],
    parts: ConnectorParts,
  ) {
    this.#pools = pools;
    this.#system = system;
    this.#parts = parts;
    // One whose program never started on its node does not start now.
    const begin = () => Promise.reject(SURPLUS);
    const wish = { system, key: "", lease: { labels: [], for_seconds: 1 }, idleMs: 60_000 };
    this.#former = new RunnerPool({ begin, remove }, wish, parts);
  }

  has(runner: string): boolean {
    return [...this.#pools, this.#former].some((pool) => pool.runners.has(runner));
  }

  /** Goes on with the runners of an earlier process, by their leases. Call it before `want`, again when it rejects. */
  async adopt(): Promise<void> {
    const { pool: client, name: connector, log } = this.#parts;
    // Another client may write anything into its own leases.
    const { name: me } = await client.call("who_am_i");
    for await (const row of client.list("list_leases", { "job.system": this.#system, owner: me })) {
      const found = row.state === "waiting" || row.state === "granted" ? markIn(row.data) : undefined;
      if (found?.connector !== connector) continue;
      const pool = this.#pools.find((one) => one.fits(found.key, row.labels));
      if (pool === undefined && !this.#former.runners.has(found.runner))
        log.warn({ runner: found.runner, lease: row.id }, "goes on with a runner of a rule that is gone");
      (pool ?? this.#former).adopt(found.runner, row);
    }
    this.#former.want(0);
  }

  /** Leaves runners and their leases to the next process. */
  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#pools, this.#former].map((pool) => pool.close(graceMs)));
  }
}

function markIn(data: string | null): z.output<typeof mark> | undefined {
  try {
    return mark.safeParse(JSON.parse(data ?? "null")).data;
  } catch {
    return undefined;
  }
}
