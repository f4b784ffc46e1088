import { type Clock, type Random, sleep } from "@nodeyard/runtime";
import type { MemoryTree } from "@nodeyard/tree";
import { askForNodes, readLease, releaseLease } from "nodeyard";

/** What the CLI does: asks for a lease, uses what it gets, and gives it back or forgets to. */
export class LeaseClient {
  open = 0;
  granted = 0;
  /** Granted or not. */
  ended = 0;
  readonly #handles: { readonly tree: MemoryTree; readonly clock: Clock; readonly random: Random };

  readonly #onForgotten: () => void;

  constructor(tree: MemoryTree, clock: Clock, random: Random, onForgotten: () => void) {
    this.#handles = { tree, clock, random };
    this.#onForgotten = onForgotten;
  }

  async live(labels: readonly string[]): Promise<void> {
    const { clock, random } = this.#handles;
    this.open++;
    const forMs = 5_000 + random.float() * 60_000;
    const lease = await askForNodes(this.#handles, { labels, owner: "cli@here", forMs });
    const patience = random.float() < 0.2 ? 300 : Number.POSITIVE_INFINITY;
    for (let waited = 0; ; waited += 100) {
      await sleep(clock, 100);
      const now = await readLease(this.#handles, lease.id);
      if (now === undefined) break;
      if (now.state === "granted") {
        this.granted++;
        await sleep(clock, random.float() * 3_000);
        if (random.float() < 0.7) await releaseLease(this.#handles, lease.id);
        else this.#onForgotten();
        break;
      }
      if (now.state === "failed" || waited > patience) {
        await releaseLease(this.#handles, lease.id);
        break;
      }
    }
    this.open--;
    this.ended++;
  }
}
