import { paths } from "@nodeyard/model";
import { deleteNode } from "@nodeyard/operations";
import { type Clock, NodeyardError, type Random, sleep } from "@nodeyard/runtime";
import { type MemoryTree, TreeError } from "@nodeyard/tree";
import type { LogCheck } from "./checks/index.ts";
import { between, pick } from "./streams.ts";

/** A record stays damaged for this long, milliseconds: often for more than two sweeps. */
const DAMAGED_MS = [2_000, 200_000] as const;

/** How a record is damaged, from its text. */
const DAMAGES: readonly ((text: string) => Uint8Array)[] = [
  () => Buffer.from("nonsense"),
  () => Buffer.from(""),
  () => Buffer.from("[]"),
  (text) => Buffer.from(text.slice(0, text.length / 2)),
  (text) => Buffer.from(JSON.stringify({ ...JSON.parse(text), state: "verifying" })),
  (text) => Buffer.from(JSON.stringify({ ...JSON.parse(text), provider: 7 })),
  (text) => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from(', "comment": "\xff"}', "latin1")]),
];

interface Handles {
  readonly tree: MemoryTree;
  readonly clock: Clock;
  readonly random: Random;
}

/** Another program that overwrites node records with unreadable text, and the person who repairs or removes them later. */
export class DamagedRecords {
  /** Nodes whose records are damaged and still to be repaired or removed. */
  readonly open = new Set<string>();
  readonly #handles: Handles;
  readonly #check: LogCheck;
  readonly #touched: (node: string) => void;
  readonly #failed: (error: unknown) => void;

  /** `touched` is called for each node that is damaged: its client may find it so. */
  constructor(
    handles: Handles,
    check: LogCheck,
    touched: (node: string) => void,
    failed: (error: unknown) => void,
  ) {
    this.#handles = handles;
    this.#check = check;
    this.#touched = touched;
    this.#failed = failed;
  }

  damage(): void {
    const ids = [...this.#check.nodes]
      .filter(([id, { data }]) => data.provider !== "py" && !this.open.has(id))
      .map(([id]) => id);
    if (ids.length === 0) return;
    const id = pick(this.#handles.random, ids);
    this.#touched(id);
    this.open.add(id);
    this.#live(id)
      .catch(this.#failed)
      .finally(() => this.open.delete(id));
  }

  async #live(id: string): Promise<void> {
    const { tree, clock, random } = this.#handles;
    const path = paths.node(id);
    const damage = pick(random, DAMAGES);
    const forMs = between(random, ...DAMAGED_MS);
    const isRemoved = random.float() < 0.4;
    const found = await tree.get(path).catch(ignore);
    if (found === undefined) return;
    const { version } = found.stat;
    const written = await tree
      .set(path, damage(Buffer.from(found.data).toString()), { version })
      .catch(ignore);
    if (written === undefined) return;
    await sleep(clock, forMs);
    const now = await tree.get(path).catch(ignore);
    // The node is gone, or its client has written its own copy over the record.
    if (now?.stat.version !== version + 1 || (isRemoved && (await this.#remove(id)))) return;
    await tree.set(path, found.data, { version: version + 1 }).catch(ignore);
  }

  /** As an operator does it. False: a client has the node. */
  async #remove(id: string): Promise<boolean> {
    try {
      await deleteNode(this.#handles, id);
      return true;
    } catch (error) {
      if (!(error instanceof NodeyardError)) throw error;
      return false;
    }
  }
}

/** The node is gone, or another process was faster. */
function ignore(error: unknown): undefined {
  if (error instanceof TreeError && (error.code === "tree.no_node" || error.code === "tree.bad_version"))
    return undefined;
  throw error;
}
