import type { Pairing } from "@nodeyard/model";
import { askForNodes, readLease, releaseLease } from "@nodeyard/operations";
import { type Clock, type Random, sleep } from "@nodeyard/runtime";
import type { MemoryTree } from "@nodeyard/tree";
import { again, isLost } from "./retried.ts";
import { between } from "./streams.ts";

/** Some leases and jobs outlast three sweeps of a launcher, milliseconds. */
export const LONG_MS = [190_000, 260_000] as const;
/** The share of such leases and jobs. */
export const LONG = 0.04;

/** The share of nodes that are given back as dirty. */
const DIRTY = 0.3;

/** Plays the CLI: asks for a lease, uses its nodes, and releases it or forgets to. */
export class LeaseClient {
  open = 0;
  granted = 0;
  /** Ended leases, granted or not. */
  ended = 0;
  readonly #handles: { readonly tree: MemoryTree; readonly clock: Clock; readonly random: Random };

  readonly #long: Random;
  readonly #onForgotten: () => void;

  /** `long`: chance of leases that outlast sweeps. */
  constructor(tree: MemoryTree, clock: Clock, random: Random, long: Random, onForgotten: () => void) {
    this.#handles = { tree, clock, random };
    this.#long = long;
    this.#onForgotten = onForgotten;
  }

  /** `same`: a mixed set with these rules. */
  async live(labels: readonly string[], same?: readonly Pairing[]): Promise<void> {
    const { random } = this.#handles;
    const long = this.#long;
    this.open++;
    const isLong = long.float() < LONG;
    const forMs = Math.round(isLong ? between(long, ...LONG_MS) : 5_000 + random.float() * 60_000);
    const lease = await this.#ask(labels, forMs, same);
    if (lease !== undefined) await this.#use(lease, isLong ? forMs * 0.9 : undefined);
    this.open--;
    this.ended++;
  }

  /** Undefined if the command failed because of the connection: what it left ends by itself. */
  async #ask(
    labels: readonly string[],
    forMs: number,
    same: readonly Pairing[] | undefined,
  ): Promise<string | undefined> {
    try {
      // The checks read the requested time there (checks/leases.ts).
      const wish = { labels, owner: `cli@for-${forMs}`, forMs, ...(same && { same }) };
      return (await askForNodes(this.#handles, wish)).id;
    } catch (error) {
      if (!isLost(error)) throw error;
      return undefined;
    }
  }

  async #use(lease: string, usedFor: number | undefined): Promise<void> {
    const { clock, random } = this.#handles;
    const verdict = random.float() < DIRTY ? "dirty" : null;
    const release = () => again(clock, random, () => releaseLease(this.#handles, lease, { verdict }));
    const patience = random.float() < 0.2 ? 300 : Number.POSITIVE_INFINITY;
    for (let waited = 0; ; waited += 100) {
      await sleep(clock, 100);
      const now = await again(clock, random, () => readLease(this.#handles, lease));
      if (now === undefined) break;
      if (now.state === "granted") {
        this.granted++;
        await sleep(clock, usedFor ?? random.float() * 3_000);
        if (random.float() < 0.7) await release();
        else this.#onForgotten();
        break;
      }
      if (now.state === "failed" || waited > patience) {
        await release();
        break;
      }
    }
  }
}
