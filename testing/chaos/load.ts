import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import { type Random, systemClock, systemRandom } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import { orNothing, patiently } from "./patience.ts";
import { LABELS } from "./site.ts";
import { Zuul } from "./zuul.ts";

const ZUUL_LIVES = 5;
const LEASE_LIVES = 2;
/** After this time a lease expires whose client got an error while everything was down. */
const LEASE_MS = 40_000;

/** Clients that make one request after another until they are stopped: as Zuul, and with leases. */
export class Load {
  readonly zuul: Zuul;
  /** Errors that clients have met. */
  readonly complaints: unknown[] = [];
  leases = 0;
  readonly #tree: Tree;
  readonly #random: Random;
  readonly #lives: readonly Promise<void>[];
  #stopping = false;

  constructor(tree: Tree, random: Random) {
    this.#tree = tree;
    this.#random = random;
    this.zuul = new Zuul(tree, random);
    this.#lives = [
      ...Array.from({ length: ZUUL_LIVES }, () => this.#repeat(() => this.zuul.life(this.#labels()))),
      ...Array.from({ length: LEASE_LIVES }, () => this.#repeat(() => this.#lease())),
    ];
  }

  /** Makes no new requests; resolves when all that began have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#lives);
  }

  async #repeat(life: () => Promise<unknown>): Promise<void> {
    while (!this.#stopping && this.complaints.length === 0) {
      try {
        await life();
      } catch (error) {
        this.complaints.push(error);
      }
      await sleep(this.#random.float() * 100);
    }
  }

  #labels(): string[] {
    const count = this.#random.float() < 0.3 ? 2 : 1;
    return Array.from({ length: count }, () => LABELS[Math.floor(this.#random.float() * LABELS.length)]!);
  }

  /** A client without a session of its own: requests nodes by a lease, uses and releases them. */
  async #lease(): Promise<void> {
    const handles = { tree: this.#tree, clock: systemClock, random: systemRandom };
    let lease: Lease;
    try {
      lease = await askForNodes(handles, { labels: this.#labels(), owner: "chaos", forMs: LEASE_MS });
    } catch (error) {
      // After an error the client has no nodes; the end of the run checks that nothing of the lease is left.
      if ((error as { outcome?: unknown }).outcome === undefined) throw error;
      return;
    }
    const path = `/nodeyard/leases/${lease.id}`;
    const expires = performance.now() + LEASE_MS;
    for (;;) {
      const found = await orNothing(() => this.#tree.get(path));
      const state = found && (JSON.parse(Buffer.from(found.data).toString()) as Lease).state;
      if (state === "granted") break;
      // An expired lease is no longer served; the end of the run checks that its request is gone too.
      if (performance.now() > expires - 1_000) return;
      if (state === undefined || state === "failed")
        throw new Error(`lease ${lease.id} is ${state ?? "gone"}`);
      await sleep(50);
    }
    await sleep(100 + this.#random.float() * 200);
    await patiently(() => releaseLease(handles, lease.id));
    this.leases++;
  }
}
