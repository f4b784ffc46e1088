import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

interface Pool {
  readonly session: bigint;
  readonly labels: readonly string[];
  goneAt: number | undefined;
}

const POOL = /^\/nodepool\/components\/pool\/./;
/** The accept of a pool may be in flight when its component is deleted: calls are late by at most this, milliseconds. */
const UNDER_WAY_MS = 5_000;

/** A pool is in the registry before it accepts a request (docs/contract/records.md, "Component"). */
export class Registry implements Rule {
  /** With those that left a moment ago. */
  readonly #pools = new Map<string, Pool>();

  onRequest({ id, before, after, write }: Change, { now }: Replay): void {
    if (stateOf(after) !== "pending" || stateOf(before) !== "requested" || !isLauncher(write.client)) return;
    if (!this.#serves(write.session, after!.data.node_types as string[], now))
      throw new Broken("a pool is registered before it accepts", write, id);
  }

  onWrite({ ops, results, session }: AppliedWrite, { now }: Replay): void {
    for (const [index, op] of ops.entries()) {
      const result = results[index];
      const path = result?.op === "create" ? result.path : op.path;
      if (op.op === "check" || !POOL.test(path)) continue;
      const pool = this.#pools.get(path);
      if (op.op !== "delete") {
        const { supported_labels } = JSON.parse(Buffer.from(op.data ?? "").toString()) as {
          supported_labels: string[];
        };
        this.#pools.set(path, { session, labels: supported_labels, goneAt: undefined });
      } else if (pool !== undefined) pool.goneAt = now;
    }
  }

  /** Whether the session has a pool for all of these labels, or had one until a moment ago. */
  #serves(session: bigint, labels: readonly string[], at: number): boolean {
    return [...this.#pools.values()].some(
      (pool) =>
        pool.session === session &&
        (pool.goneAt === undefined || at - pool.goneAt <= UNDER_WAY_MS) &&
        labels.every((label) => pool.labels.includes(label)),
    );
  }
}
