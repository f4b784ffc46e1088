import { CallRefused, type LeaseRow, type LeaseWish } from "@nodeyard/client";
import type { ConnectorParts } from "@nodeyard/connect";
import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import type { Options } from "./options.ts";

const SYSTEM = "zuul";
/** Heartbeats per interval: two of three may be lost. */
const PER_HEARTBEAT = 3;
const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [500, 30_000];

/** Which node of which connector a lease is for: the lease's `data`. */
interface Mark {
  readonly connector: string;
  readonly node: string;
}

/** The leases of a connector, by Zuul's node. What has to outlive the connector stands in them. */
export class NodeLeases {
  readonly #parts: ConnectorParts;
  readonly #heartbeatSeconds: number;
  readonly #keepSeconds: number;
  readonly #changed: (node: string | undefined) => void;
  readonly #rows = new Map<string, LeaseRow>();
  /** Rows from before a gap that have not been seen since. */
  #stale = new Set<string>();
  readonly #stop = new AbortController();
  readonly #work: Promise<unknown>;
  /** All leases are known, so one that is not here does not exist. */
  complete = false;

  constructor(
    parts: ConnectorParts,
    options: Pick<Options, "heartbeat-seconds" | "keep-seconds">,
    changed: (node: string | undefined) => void,
  ) {
    this.#parts = parts;
    this.#heartbeatSeconds = options["heartbeat-seconds"];
    this.#keepSeconds = options["keep-seconds"];
    this.#changed = changed;
    this.#work = Promise.all([this.#follow(), this.#beat()]);
  }

  get(node: string): LeaseRow | undefined {
    return this.#rows.get(node);
  }

  nodes(): readonly string[] {
    return [...this.#rows.keys()];
  }

  /** Leases for this node; a repetition gets the same lease, whoever asks. */
  async create(
    node: string,
    wish: Pick<LeaseWish, "labels" | "for_seconds" | "priority"> & {
      readonly job: { readonly id: string; readonly name: string | null };
    },
  ): Promise<void> {
    const { job, ...rest } = wish;
    const mark: Mark = { connector: this.#parts.name, node };
    const row = await this.#parts.pool.call(
      "create_lease",
      {
        body: {
          ...rest,
          heartbeat_seconds: this.#heartbeatSeconds,
          job: { system: SYSTEM, id: job.id, name: job.name, url: null },
          data: JSON.stringify(mark),
        },
      },
      { key: `zuul:${node}`, signal: this.#stop.signal },
    );
    this.#put(row);
  }

  /** Gives the lease of a node back. One that is gone is no error. */
  async release(node: string, why: string): Promise<void> {
    const row = this.#rows.get(node);
    if (row === undefined || row.state === "released") return;
    await this.#call("release_lease", row.id, { why });
    this.#rows.delete(node);
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("the connector is stopped"));
    await this.#work;
  }

  /** Follows the leases of the pool; each gap reads them anew. */
  async #follow(): Promise<void> {
    const { pool, clock, random, log } = this.#parts;
    const { signal } = this.#stop;
    for (let attempt = 0; !signal.aborted; attempt++) {
      this.#gap();
      try {
        for await (const event of pool.events({ kinds: "lease" }, { signal })) {
          attempt = 0;
          if (event.type === "gap") this.#gap();
          else if (event.type === "put" && event.kind === "lease") this.#put(event.row);
          else if (event.type === "remove") this.#removed(event.id);
          else if (event.type === "synced") {
            for (const node of this.#stale) this.#rows.delete(node);
            this.complete = event.complete;
            this.#changed(undefined);
          }
        }
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ why: messageOf(error) }, "the pool's leases cannot be followed");
      }
      await sleep(clock, backoff(random, attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS), signal).catch(() => {});
    }
  }

  /** Keeps all leases alive. Several connectors may do it. */
  async #beat(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#stop;
    for (;;) {
      await sleep(clock, (this.#heartbeatSeconds * 1_000) / PER_HEARTBEAT, signal).catch(() => {});
      if (signal.aborted) return;
      for (const { id, state, until } of [...this.#rows.values()]) {
        if (state === "released") continue;
        // A node may be held for weeks.
        const left = Date.parse(until ?? "") - clock.now();
        const isLate = left < (this.#keepSeconds * 1_000) / 2;
        await this.#call("heartbeat_lease", id)
          .then(() =>
            isLate ? this.#call("extend_lease", id, { for_seconds: this.#keepSeconds }) : undefined,
          )
          .catch((error: unknown) => {
            if (!signal.aborted) log.warn({ lease: id, why: messageOf(error) }, "a lease could not be kept");
          });
      }
    }
  }

  async #call(
    id: "heartbeat_lease" | "release_lease" | "extend_lease",
    lease: string,
    body: object = {},
  ): Promise<void> {
    const given = { path: { id: lease }, body } as never;
    const { signal } = this.#stop;
    await this.#parts.pool.call(id, given, { signal }).catch((error: unknown) => {
      if (!(error instanceof CallRefused) || (error.status !== 404 && error.status !== 409)) throw error;
    });
  }

  /** Heartbeats go on for what was known. */
  #gap(): void {
    this.complete = false;
    this.#stale = new Set(this.#rows.keys());
  }

  #put(row: LeaseRow): void {
    const mark = this.#markOf(row.data);
    if (mark === undefined) return;
    this.#stale.delete(mark.node);
    this.#rows.set(mark.node, row);
    this.#changed(mark.node);
  }

  #removed(id: string): void {
    for (const [node, row] of this.#rows)
      if (row.id === id) {
        this.#rows.delete(node);
        this.#changed(node);
      }
  }

  #markOf(data: string | null): Mark | undefined {
    try {
      const { connector, node } = JSON.parse(data ?? "") as Mark;
      return connector === this.#parts.name && typeof node === "string" ? { connector, node } : undefined;
    } catch {
      return undefined;
    }
  }
}
