import { withRoot } from "@nodeyard/coordination";
import { DEAD_LETTERS, type DeadLetter, deadLetterPath, encodeDeadLetter } from "@nodeyard/model";
import { backoff, jitter, messageOf, type Random } from "@nodeyard/runtime";
import type { Action } from "@nodeyard/scheduler";
import type { LiveTask } from "@nodeyard/telemetry";
import { TreeError } from "@nodeyard/tree";
import type { ViewEvent } from "@nodeyard/view";
import { FailedTries, type Tries } from "../failed-tries.ts";
import { type Deleted, deleteNode } from "./delete-node.ts";
import type { NodeHandles } from "./handles.ts";

/** A deletion as the scheduler decided it. */
type Decided = Pick<Extract<Action, { type: "delete" }>, "version" | "why">;

/** Milliseconds after which a node is tried again that another client had locked. */
const BUSY_MS = 1_000;

/**
 * Repeats failed deletions of nodes with growing pauses. A node that cannot be deleted is marked in the tree (a dead letter) for
 * operators, and still tried. When an operator removes the mark, it is tried at once.
 */
export class Deletions {
  readonly #context: NodeHandles;
  readonly #tryNow: (node: string) => void;
  /** Failed deletions in a row, by node. In memory: after a restart the pauses begin short again, but for dead letters. */
  readonly #tries = new FailedTries();

  /** `tryNow` is called when the pause of a node is over before its time. */
  constructor(context: NodeHandles, tryNow: (node: string) => void) {
    this.#context = context;
    this.#tryNow = tryNow;
    context.view.follow((event) => this.#onEvent(event));
  }

  /** `version`: of the record for which it was decided, and why. Resolves with the pause before the next try; undefined: none is needed. */
  async delete(
    node: string,
    decided: Decided,
    signal: AbortSignal,
    live: LiveTask,
  ): Promise<number | undefined> {
    const outcome = await this.#try(node, decided, signal, live);
    // Aborted by our own stop or a lost session: that is no failure of the provider.
    if (outcome.result === "failed") return signal.aborted ? 0 : this.#failed(node, outcome.error);
    if (outcome.result === "skipped") return BUSY_MS;
    this.#tries.end(node);
    await this.#unmark(node);
    return undefined;
  }

  /** An operator who removes a dead letter wants the node tried at once: its count of failures starts again. */
  #onEvent(event: ViewEvent): void {
    if (event.type !== "own" || event.after !== undefined) return;
    const node = nodeOf(event.path);
    if (node === undefined || !this.#context.view.nodes.byId.has(node)) return;
    this.#tries.end(node);
    this.#tryNow(node);
  }

  /** Removes dead letters of nodes that are gone. */
  async sweep(): Promise<void> {
    const { view } = this.#context;
    for (const path of [...view.own.keys()]) {
      const node = nodeOf(path);
      if (node !== undefined && view.complete && !view.hasNode(node)) await this.#unmark(node);
    }
    this.#tries.keep((node) => view.nodes.byId.has(node));
  }

  async #try(node: string, decided: Decided, signal: AbortSignal, live: LiveTask): Promise<Deleted> {
    const attempt = this.#tries.count(node) + 1;
    return deleteNode(this.#context, node, { ...decided, attempt }, signal, live).catch((error: unknown) => ({
      result: "failed",
      error: messageOf(error),
    }));
  }

  /** Counts and reports the failure. Resolves with the pause before the next try, milliseconds. */
  async #failed(node: string, error: string): Promise<number> {
    const { view, ages, clock, log, journal, random } = this.#context;
    const provider = view.nodes.byId.get(node)?.record.provider ?? null;
    const now = clock.monotonic();
    const tries = this.#tries.add(node, now);
    // A dead letter of another launcher counts, so that the pauses are long from the first failure on, also after a restart.
    const marked = view.own.get(deadLetterPath(node));
    const dead = marked !== undefined || isDeadLetter(tries, now);
    const pause = deletionPause(random, tries, dead);
    const facts = { attempt: tries.failed, error, retryMs: Math.round(pause) };
    journal.write({ event: "node.delete-failed", node, facts });
    if (dead)
      log.error({ node, provider, ...facts }, `a node cannot be deleted; see "nodeyard explain ${node}"`);
    if (dead && marked === undefined) {
      const since = ages.treeTimeOf(tries.since);
      await this.#mark({ node, provider, attempts: tries.failed, since, error });
    }
    return pause;
  }

  /** Several launchers may try the same node; the first dead letter stands, and is no error for the others. */
  async #mark(letter: DeadLetter): Promise<void> {
    const { tree, counters, journal, log } = this.#context;
    const { node, provider, attempts, error } = letter;
    const data = encodeDeadLetter(letter);
    try {
      await withRoot(tree, DEAD_LETTERS, () => tree.create(deadLetterPath(node), data));
      counters.add("launcher.dead_letters", 1, { provider: provider ?? "" });
      journal.write({ event: "node.dead-letter", node, facts: { provider, attempts, error } });
    } catch (failure) {
      if (!(failure instanceof TreeError)) throw failure;
      if (failure.code !== "tree.node_exists")
        log.warn({ node, error: messageOf(failure) }, "cannot mark a node that cannot be deleted");
    }
  }

  /** A mark that cannot be deleted now is deleted by the sweep. */
  async #unmark(node: string): Promise<void> {
    const path = deadLetterPath(node);
    if (!this.#context.view.own.has(path)) return;
    await this.#context.tree.delete(path).catch((error: unknown) => {
      if (!(error instanceof TreeError)) throw error;
    });
  }
}

/** The node of a dead letter, by its path; undefined for another path. */
function nodeOf(path: string): string | undefined {
  return path.startsWith(`${DEAD_LETTERS}/`) ? path.slice(DEAD_LETTERS.length + 1) : undefined;
}

/** Failed attempts after which a node becomes a dead letter. */
const TRIES = 10;
/** Failed attempts that are enough when the first of them was `LONG_MS` ago. */
const TRIES_AT_LEAST = 3;
const LONG_MS = 3_600_000;

/** The pause after the first failure doubles up to `MOST_MS`, milliseconds. */
const FIRST_MS = 1_000;
const MOST_MS = 300_000;
/** Milliseconds between attempts at a dead letter. */
const DEAD_MS = 1_800_000;

/** Whether the deletion has failed so often, or for so long, that an operator should look. Pure. */
export function isDeadLetter({ failed, since }: Tries, now: number): boolean {
  return failed >= TRIES || (failed >= TRIES_AT_LEAST && now - since >= LONG_MS);
}

/** Pause before the next try, milliseconds. */
export function deletionPause(random: Random, { failed }: Tries, dead: boolean): number {
  return dead ? jitter(random, DEAD_MS) : backoff(random, failed - 1, FIRST_MS, MOST_MS);
}
