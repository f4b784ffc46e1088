import { type Clock, inTime, messageOf, NodeyardError } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import { CommitFailed, type Tree, TreeError } from "@nodeyard/tree";
import type { OwnEntry, ViewEvent } from "@nodeyard/view";
import { fit } from "./fit.ts";
import { type About, ANSWERS, ASKS, decodeAsk, LONGEST_MS, type Testimony } from "./records.ts";

/** Questions answered at once, at most: the next ones stay without an answer, and the asker says so. */
const AT_ONCE = 16;
/** How long after the end of its question an answer that was not fetched stays, milliseconds. */
const LINGER_MS = 1_000;

export interface AnswererOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly log: Log;
  /** Tree time, milliseconds. */
  readonly now: () => number;
  /** As it stands under `/nodeyard/members`; another one after a lost session. */
  readonly member: () => string;
  readonly hostname: string;
  readonly version: string;
  /** Collects the answer; what it rejects with is logged, and the question stays without one. */
  readonly answer: (about: About) => Promise<Testimony>;
}

/**
 * Answers the questions under `/nodeyard/asks`, driven by the view's events, so that it costs nothing without questions. A question that
 * is gone or too old is not answered. An answer is deleted with its question, after its time, or at the end of this session.
 */
export class Answerer {
  readonly #options: AnswererOptions;
  /** Answers that lie in the tree, by the path of their question. */
  readonly #lying = new Map<string, string>();
  /** Questions that are being answered. */
  #busy = 0;

  constructor(options: AnswererOptions) {
    this.#options = options;
  }

  onEvent(event: ViewEvent): void {
    if (event.type !== "own" || !event.path.startsWith(`${ASKS}/`)) return;
    if (event.after === undefined) void this.#withdraw(event.path);
    else if (event.before === undefined) void this.#take(event.after);
  }

  async #take(entry: OwnEntry): Promise<void> {
    const { log } = this.#options;
    const ask = this.#decode(entry);
    if (ask === undefined) return;
    const until = entry.created + Math.min(ask.withinMs, LONGEST_MS);
    // The asker is gone or has given up. A new launcher sees such questions in its first view.
    if (this.#options.now() >= until) return;
    if (this.#busy >= AT_ONCE) {
      log.warn(
        { ask: entry.path, answering: this.#busy },
        "too many processes ask at once: dropped a question",
      );
      return;
    }
    this.#busy++;
    try {
      await this.#answer(entry.path, ask.about, until);
    } catch (error) {
      log.debug({ ask: entry.path, error: messageOf(error) }, "cannot answer a question");
    } finally {
      this.#busy--;
    }
  }

  #decode(entry: OwnEntry): ReturnType<typeof decodeAsk> | undefined {
    try {
      return decodeAsk(entry.data);
    } catch (error) {
      this.#options.log.warn(
        { path: entry.path, error: messageOf(error) },
        "skipped a question that cannot be read",
      );
      return undefined;
    }
  }

  async #answer(ask: string, about: About, until: number): Promise<void> {
    const { tree, clock, now, answer, hostname, version } = this.#options;
    const late = () => new NodeyardError("asking.too_late", "the answer was not ready in time");
    const testimony = await inTime(clock, Math.min(until - now(), LONGEST_MS), answer(about), late);
    if (now() >= until) return;
    const member = this.#options.member();
    const path = `${ANSWERS}/${ask.slice(ASKS.length + 1)}-${member}`;
    try {
      // The commit checks that the question still exists: an answer without one would never be read.
      await tree.commit([
        { op: "check", path: ask },
        { op: "create", path, data: fit({ member, hostname, version, testimony }), ephemeral: true },
      ]);
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    this.#lying.set(ask, path);
    clock.setTimer(
      Math.max(0, Math.min(until - now(), LONGEST_MS)) + LINGER_MS,
      () => void this.#withdraw(ask),
      {
        background: true,
      },
    );
    // It may have gone while the answer was on its way: then its event came before there was anything to take back.
    if ((await tree.stat(ask)) === undefined) await this.#withdraw(ask);
  }

  /** Deletes the answer to a question, once. The asker deletes what it has read, so it may be gone. */
  async #withdraw(ask: string): Promise<void> {
    const path = this.#lying.get(ask);
    if (path === undefined) return;
    this.#lying.delete(ask);
    const { tree, log } = this.#options;
    await tree.delete(path).catch((error: unknown) => {
      if (!isMissing(error))
        log.debug(
          { path, error: messageOf(error) },
          "cannot delete an answer; it disappears with the session",
        );
    });
  }
}

function isMissing(error: unknown): boolean {
  if (error instanceof CommitFailed) return error.reason.code === "tree.no_node";
  return error instanceof TreeError && error.code === "tree.no_node";
}
