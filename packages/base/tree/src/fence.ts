import { type Clock, NodeyardError, type Random } from "@nodeyard/runtime";
import { contenderPrefix, withdraw } from "@nodeyard/zookeeper";
import type { Op, OpResult, Tree } from "./contract.ts";
import { isRefused, NoNode, TreeError } from "./errors.ts";
import { type HeldLock, heldLock, lineOf, tryLock } from "./lock.ts";

/**
 * The right to act was lost: the session ended, the lock is gone, or the record was changed by others. The caller stops without
 * undoing anything that others may own by now.
 */
export class FenceLost extends NodeyardError {
  constructor(what: string, cause?: unknown) {
    super("launcher.fence_lost", `lost the right to act: ${what}`, { cause });
  }
}

const NOTHING = new Uint8Array(0);

/** Wall time may run ahead of the monotonic clock by this much before we assume to have been suspended. */
const SUSPECT_MS = 2_000;

/**
 * Locks as the launcher takes them: never waiting, never creating the object that is locked, and trusted only as long as
 * the session surely lives (rule 1).
 */
export class Fence {
  readonly #tree: Tree;
  readonly #clock: Clock;
  readonly #random: Random;
  /**
   * Difference of the two clocks at the last call. It grows while the machine is suspended: Linux's monotonic clock stands still then
   * (clock_gettime(2)).
   */
  #wallMinusMono: number;
  /** After a suspected suspension: the trust that was in force then no longer counts. */
  #distrusted: number | undefined;

  constructor(tree: Tree, clock: Clock, random: Random) {
    this.#tree = tree;
    this.#clock = clock;
    this.#random = random;
    this.#wallMinusMono = clock.now() - clock.monotonic();
  }

  /** Whether `held` may still be acted upon; to be asked before every outside effect. */
  holds(held: Pick<HeldLock, "epoch">): boolean {
    return this.#tree.session().epoch === held.epoch && this.sessionTrusted();
  }

  /** Throws FenceLost unless `held` may still be acted upon. */
  demand(held: Pick<HeldLock, "contender" | "epoch">): void {
    if (!this.holds(held)) throw new FenceLost(`lock ${held.contender}`);
  }

  /**
   * Whether the session surely lives: the time for which its last answer is trusted is not over, and this process was not suspended
   * since.
   */
  sessionTrusted(): boolean {
    const session = this.#tree.session();
    const mono = this.#clock.monotonic();
    const drift = this.#clock.now() - mono;
    if (Math.abs(drift - this.#wallMinusMono) > SUSPECT_MS) this.#distrusted = session.trustedUntil;
    this.#wallMinusMono = drift;
    if (this.#distrusted !== undefined && session.trustedUntil !== this.#distrusted)
      this.#distrusted = undefined;
    if (session.trustedUntil === Number.POSITIVE_INFINITY) return session.state === "connected";
    return (
      this.#distrusted === undefined &&
      session.state !== "expired" &&
      session.state !== "closed" &&
      mono < session.trustedUntil
    );
  }

  /**
   * Makes lock parent and contender in one commit with `more`: first in line by construction. "exists" when the parent
   * is there already (then nothing was done). Other refusals reject with CommitFailed.
   */
  async lockFresh(
    parent: string,
    more: readonly Op[],
  ): Promise<{ readonly held: HeldLock; readonly results: readonly OpResult[] } | "exists"> {
    const prefix = contenderPrefix(this.#random.uuid());
    try {
      const results = await this.#tree.commit([
        { op: "create", path: parent },
        { op: "create", path: `${parent}/${prefix}`, ephemeral: true, sequential: true },
        ...more,
      ]);
      const made = results[1] as Extract<OpResult, { op: "create" }>;
      // A call made between two sessions is carried out in the second: the answer tells which session the contender is of.
      const held = heldLock(this.#tree, parent, made.path, this.#tree.session().epoch);
      return { held, results: results.slice(2) };
    } catch (error) {
      if (isRefused(error, "tree.node_exists", parent)) return "exists";
      // The rest of the commit's outcome is not known, so a contender of its is never believed in, and must not stay.
      if (error instanceof TreeError && error.outcome === "unknown")
        await withdraw(lineOf(this.#tree), { parent, prefix, data: NOTHING, doubtful: true }, undefined, {});
      throw error;
    }
  }

  /** Tries the lock whose parent exists. "busy": someone is before us. "gone": the parent is not there. */
  lockExisting(parent: string): Promise<HeldLock | "busy" | "gone"> {
    return this.#lock(parent, "never");
  }

  /**
   * Tries a lock, and makes its parent where that is missing, but never the object that is locked
   * (docs/contract/locks.md, "Ghost paths"). "gone": the object is not there.
   */
  lock(parent: string): Promise<HeldLock | "busy" | "gone"> {
    return this.#lock(parent, "parent-only");
  }

  /** Does not repeat an interrupted attempt: the caller may have to check first whether it still may take the lock. */
  async #lock(parent: string, createParent: "never" | "parent-only"): Promise<HeldLock | "busy" | "gone"> {
    try {
      const options = { random: this.#random, createParent, once: true };
      return (await tryLock(this.#tree, parent, options)) ?? "busy";
    } catch (error) {
      if (error instanceof NoNode) return "gone";
      throw error;
    }
  }
}
