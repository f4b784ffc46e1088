import { decodeNode, type NodeRecord, paths } from "@nodeyard/model";
import { type Clock, messageOf, type Random } from "@nodeyard/runtime";
import { type CreateOp, type Op, type OpResult, type Tree, TreeError } from "@nodeyard/tree";
import type { Log } from "../../telemetry/index.ts";
import { poolKey, type View } from "../../view/index.ts";
import type { ServingPool } from "../context.ts";
import { LedgerBook } from "./ledger-book.ts";

const ROOT = "/nodeyard/limits";

export interface LedgerHandles {
  readonly tree: Tree;
  readonly view: View;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Limits that several launchers share, exact among Nodeyard's (design, rule 3). Pools without a limit have no ledger. What
 * Python launchers create or delete is only seen: `audit` sets the count right when it was off twice in a row.
 */
export class Ledgers {
  readonly #handles: LedgerHandles;
  readonly #books = new Map<string, LedgerBook>();
  readonly #limits = new Map<string, number>();
  readonly #off = new Map<string, number>();

  constructor(handles: LedgerHandles) {
    this.#handles = handles;
  }

  /** Sets a pool's limit; Infinity: no ledger is kept. */
  setLimit(key: string, limit: number): void {
    if (Number.isFinite(limit)) this.#limits.set(key, limit);
    else this.#limits.delete(key);
  }

  /** Creates a node record, counted. Rejects with LimitReached. Returns the path. */
  async createUnder(pool: ServingPool, create: CreateOp): Promise<string> {
    const limit = this.#limits.get(pool.key);
    if (limit === undefined) {
      return (await this.#handles.tree.create(create.path, create.data, { sequential: true })).path;
    }
    const [result] = await this.#book(pool.key).commit(1, limit, [create]);
    return (result as Extract<OpResult, { op: "create" }>).path;
  }

  /** Carries out the commit that deletes a node record, counted. */
  async deleteFrom(record: NodeRecord, ops: readonly Op[]): Promise<void> {
    const key = poolKey(record.provider, record.pool);
    if (this.#limits.has(key)) await this.#book(key).commit(-1, Number.POSITIVE_INFINITY, ops);
    else await this.#handles.tree.commit(ops);
  }

  /** Compares every ledger with the view; one that is off twice in a row is counted anew. To be called at each resync. */
  async audit(): Promise<void> {
    const { tree, view, log } = this.#handles;
    for (const key of this.#limits.keys()) {
      const found = await tree.get(pathOf(key)).catch(() => undefined);
      if (found === undefined || !view.complete) continue;
      const { instances } = JSON.parse(Buffer.from(found.data).toString()) as { instances?: number };
      const off = (instances ?? 0) - view.nodes.byPool.get(key).size;
      if (off === 0 || this.#off.get(key) === undefined) {
        if (off === 0) this.#off.delete(key);
        else this.#off.set(key, off);
        continue;
      }
      this.#off.delete(key);
      try {
        const corrected = await this.#book(key).recount();
        if (corrected) log.warn({ pool: key, off: corrected }, "a ledger was off and is set to what exists");
      } catch (error) {
        log.warn(
          { pool: key, error: messageOf(error) },
          "could not set a ledger right; the next sweep tries again",
        );
      }
    }
  }

  #book(key: string): LedgerBook {
    const known = this.#books.get(key);
    if (known !== undefined) return known;
    const { tree } = this.#handles;
    const book = new LedgerBook(tree, this.#handles, { scope: key, path: pathOf(key) }, () =>
      countRecords(tree, key),
    );
    this.#books.set(key, book);
    return book;
  }
}

/** How many records a pool has, read from the tree itself: the view may be behind. */
async function countRecords(tree: Tree, key: string): Promise<number> {
  const ids = await tree.children(paths.nodes).catch((error: unknown): readonly string[] => {
    if (error instanceof TreeError && error.code === "tree.no_node") return [];
    throw error;
  });
  const owners = await Promise.all(
    ids.map(async (id) => {
      try {
        const { provider, pool } = decodeNode(id, (await tree.get(paths.node(id))).data);
        return poolKey(provider, pool);
      } catch (error) {
        if (error instanceof TreeError && error.code !== "tree.no_node") throw error;
        return undefined;
      }
    }),
  );
  return owners.filter((owner) => owner === key).length;
}

function pathOf(key: string): string {
  const [provider, pool] = key.split("/") as [string, string];
  return `${ROOT}/${encodeURIComponent(provider)}/${encodeURIComponent(pool)}`;
}
