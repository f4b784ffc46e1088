import { type Clock, hexId, messageOf, NodeyardError, type Random, sleep } from "@nodeyard/runtime";
import { CommitFailed, type Op, type OpResult, type Tree, TreeError } from "@nodeyard/tree";
import { holderOf } from "@nodeyard/zookeeper";
import { isInterrupted } from "./interrupted.ts";

/** A lock that we hold: the contender's path is what fenced writes check. */
export interface Held {
  readonly parent: string;
  readonly contender: string;
  /** Epoch of the session that made it; in another epoch it is worth nothing. */
  readonly epoch: number;
}

/** The right to act was lost: the session ended, the lock is gone, or the record was changed by others. */
export class FenceLost extends NodeyardError {
  constructor(what: string, cause?: unknown) {
    super("launcher.fence_lost", `lost the right to act: ${what}`, { cause });
  }
}

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
  holds(held: Held): boolean {
    return this.#tree.session().epoch === held.epoch && this.sessionTrusted();
  }

  /** Throws FenceLost unless `held` may still be acted upon. */
  demand(held: Held): void {
    if (!this.holds(held)) throw new FenceLost(`lock ${held.contender}`);
  }

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
   * is there already (then nothing was done). Other refusals reject with CommitFailed, whose index counts from the
   * parent's creation.
   */
  async lockFresh(
    parent: string,
    more: readonly Op[],
  ): Promise<{ readonly held: Held; readonly results: readonly OpResult[] } | "exists"> {
    const prefix = `${parent}/${hexId(this.#random)}__lock__`;
    try {
      const results = await this.#tree.commit([
        { op: "create", path: parent },
        { op: "create", path: prefix, ephemeral: true, sequential: true },
        ...more,
      ]);
      const made = results[1] as Extract<OpResult, { op: "create" }>;
      return { held: this.#held(parent, made.path), results: results.slice(2) };
    } catch (error) {
      if (error instanceof CommitFailed && error.index === 0 && error.reason.code === "tree.node_exists")
        return "exists";
      if (error instanceof TreeError && error.outcome === "unknown")
        await this.#dropContender(prefix, parent);
      throw error;
    }
  }

  /** Tries the lock whose parent exists. "busy": someone is before us. "gone": the parent is not there. */
  async lockExisting(parent: string): Promise<Held | "busy" | "gone"> {
    const prefix = `${parent}/${hexId(this.#random)}__lock__`;
    const [created, listed] = await Promise.allSettled([
      this.#tree.create(prefix, undefined, { ephemeral: true, sequential: true }),
      this.#tree.children(parent),
    ]);
    if (created.status === "rejected") {
      const error: unknown = created.reason;
      if (error instanceof TreeError && error.code === "tree.no_node") return "gone";
      if (error instanceof TreeError && error.outcome === "unknown")
        await this.#dropContender(prefix, parent);
      throw error;
    }
    const held = this.#held(parent, created.value.path);
    const own = held.contender.slice(parent.length + 1);
    if (listed.status === "rejected") {
      await this.release(held);
      throw listed.reason;
    }
    if (holderOf(listed.value) === own) return held;
    await this.release(held);
    return "busy";
  }

  /** A call made between two sessions is carried out in the second: the answer tells which session the contender is of. */
  #held(parent: string, contender: string): Held {
    return { parent, contender, epoch: this.#tree.session().epoch };
  }

  /** Gives the lock back; an answer that never comes is made good by `#dropContender`. */
  async release(held: Held): Promise<void> {
    try {
      await this.#tree.delete(held.contender);
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      if (error.code === "tree.no_node") return;
      if (!isInterrupted(error)) throw error;
      await this.#dropContender(held.contender, held.parent);
    }
  }

  /**
   * After a lost reply: whatever of ours is under `parent` is removed, unless the session ends, which does it too. A lock
   * that we may or may not have is thus never left behind, and never believed in. The session is the one of this moment: a
   * call that waited for a connection may have been carried out in a later one than it was made in.
   */
  async #dropContender(prefix: string, parent: string): Promise<void> {
    const { epoch } = this.#tree.session();
    const name = prefix.slice(parent.length + 1);
    for (
      let attempt = 0;
      this.#tree.session().epoch === epoch && this.#tree.session().state !== "closed";
      attempt++
    ) {
      try {
        // The connection may be to another server now, which is behind and does not show our contender yet.
        await this.#tree.sync(parent);
        const mine = (await this.#tree.children(parent)).filter((child) => child.startsWith(name));
        await Promise.all(mine.map((child) => this.#tree.delete(`${parent}/${child}`)));
        return;
      } catch (error) {
        if (error instanceof TreeError && error.code === "tree.no_node") return;
        if (attempt >= 20) throw new FenceLost(`${prefix}: ${messageOf(error)}`, error);
        await sleep(this.#clock, Math.min(5_000, 100 * 2 ** attempt));
      }
    }
  }
}
