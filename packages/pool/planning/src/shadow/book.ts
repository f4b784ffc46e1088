import type { ShadowDecision } from "@nodeyard/launcher";
import { type Clock, defined } from "@nodeyard/runtime";
import {
  type NodeEntry,
  poolKey,
  poolOf,
  type RequestEntry,
  type View,
  type ViewEvent,
} from "@nodeyard/view";
import { rank } from "../compare.ts";
import type { PastNode } from "../demand.ts";
import { Experience } from "../experience.ts";
import type { ShadowAnswer, TreeAnswer } from "./answers.ts";
import { differencesOf, type ShadowDifference, type ShadowDifferenceCode } from "./differences.ts";

/** Launches of the past by which those of the shadow are estimated, and waits for the summary: the latest so many. */
const LAUNCHES = 2_000;
const WAITS = 10_000;

/** A request that is over. */
export interface ShadowRow {
  readonly request: string;
  readonly labels: readonly string[];
  readonly requestor: string | null;
  /** Seconds since the epoch. */
  readonly created: number | null;
  readonly shadow: ShadowAnswer;
  readonly tree: TreeAnswer;
  readonly differences: readonly ShadowDifference[];
}

/** A request that is not over. */
interface Followed {
  entry: RequestEntry;
  readonly states: { readonly state: string; readonly at: number | null }[];
  /** Its nodes, by id: whether each was there before it. A failed request has none in the end. */
  readonly nodes: Map<string, boolean>;
  answer: ShadowAnswer | undefined;
}

/** Figures of all requests that are over. Keys are part of `--json`. */
export interface ShadowSummary {
  readonly requests: number;
  /** Not over yet, and in no other figure. */
  readonly open: number;
  readonly same: number;
  readonly withdrawn: number;
  readonly differences: readonly {
    readonly code: ShadowDifferenceCode;
    readonly documented: string | null;
    readonly requests: number;
  }[];
  /** Of requests that both served, seconds. */
  readonly shadow: Waits;
  readonly tree: Waits;
  /** What was not recorded of launches, and what was taken instead. */
  readonly assumed: readonly string[];
}
interface Waits {
  readonly wait_median: number | null;
  readonly wait_p95: number | null;
}

/**
 * Holds what a launcher in shadow decides against what becomes of each request in the tree, from records alone. Of requests that are over
 * it keeps sums and the latest waits only.
 */
export class ShadowBook {
  readonly #clock: Pick<Clock, "now">;
  readonly #onRow: (row: ShadowRow) => void;
  readonly #open = new Map<string, Followed>();
  readonly #launches: PastNode[] = [];
  readonly #waits: { readonly shadow: number; readonly tree: number }[] = [];
  readonly #counts = { requests: 0, same: 0, withdrawn: 0 };
  readonly #differences = new Map<
    string,
    { readonly code: ShadowDifferenceCode; readonly documented: string | null; requests: number }
  >();
  readonly #assumed = new Set<string>();
  #experience: Experience | undefined;
  /** Another one for each estimate: the same draw again would always be the same launch of the past. */
  #seed = 0;

  constructor(clock: Pick<Clock, "now">, onRow: (row: ShadowRow) => void) {
    this.#clock = clock;
    this.#onRow = onRow;
  }

  /** Begins to follow; to be called before the view is started. */
  follow(view: View): void {
    view.follow((event) => this.#onEvent(view, event));
  }

  /** Takes what the launcher in shadow does. */
  decided(request: string, decision: ShadowDecision): void {
    const followed = this.#open.get(request);
    if (followed !== undefined) followed.answer = this.#answerOf(decision, followed.entry);
  }

  summary(): ShadowSummary {
    const figures = (of: "shadow" | "tree"): Waits => {
      const sorted = this.#waits.map((waits) => 1_000 * waits[of]).sort((a, b) => a - b);
      return { wait_median: rank(sorted, 0.5), wait_p95: rank(sorted, 0.95) };
    };
    return {
      ...this.#counts,
      open: this.#open.size,
      differences: [...this.#differences.values()].sort((a, b) => b.requests - a.requests),
      shadow: figures("shadow"),
      tree: figures("tree"),
      assumed: [...this.#assumed],
    };
  }

  #onEvent(view: View, event: ViewEvent): void {
    if (event.type === "node" && event.after !== undefined) this.#onNode(event.before, event.after);
    if (event.type === "request") this.#onRequest(view, event.id, event.after);
  }

  #onNode(before: NodeEntry | undefined, { id, record }: NodeEntry): void {
    const { allocatedTo, state, stateTime, createdTime, provider, pool, type } = record;
    const followed = this.#open.get(allocatedTo ?? "");
    // A node that was ready when it was given to the request.
    if (followed !== undefined && !followed.nodes.has(id))
      followed.nodes.set(id, before?.record.state === "ready");
    if (state !== "ready" || before?.record.state === "ready") return;
    // Hosts are registered as ready: nothing was launched.
    if (stateTime === null || createdTime === null || stateTime === createdTime) return;
    const launched = Math.max(0, stateTime - createdTime);
    this.#launches.push({
      node: id,
      ...defined({ provider: provider ?? undefined, pool: pool ?? undefined, label: type[0] }),
      launched,
    });
    if (this.#launches.length > LAUNCHES) this.#launches.shift();
    this.#experience = undefined;
  }

  #onRequest(view: View, id: string, after: RequestEntry | undefined): void {
    const known = this.#open.get(id);
    if (after !== undefined && (after.record.state === "requested" || after.record.state === "pending")) {
      if (known !== undefined) {
        known.entry = after;
        this.#note(known);
        // One that is pending with nodes was decided by others before.
      } else if (after.record.state === "requested" || view.nodes.byRequest.count(id) === 0) {
        const followed: Followed = { entry: after, states: [], nodes: new Map(), answer: undefined };
        this.#open.set(id, followed);
        this.#note(followed);
      }
      return;
    }
    if (known === undefined) return;
    this.#open.delete(id);
    if (after !== undefined) {
      known.entry = after;
      this.#note(known);
    }
    this.#end(known, treeAnswer(view, known, after));
  }

  #note({ entry: { record }, states }: Followed): void {
    if (states.at(-1)?.state !== record.state) states.push({ state: record.state, at: record.stateTime });
  }

  #end({ entry: { id, record }, answer }: Followed, tree: TreeAnswer): void {
    const shadow = answer ?? {
      result: "undecided",
      pool: null,
      reused: 0,
      launched: 0,
      wait: null,
      reason: null,
    };
    const differences = differencesOf(shadow, tree);
    this.#counts.requests++;
    if (tree.result === "withdrawn") this.#counts.withdrawn++;
    else if (differences.length === 0) this.#counts.same++;
    for (const { code, documented } of differences) {
      const key = JSON.stringify([code, documented]);
      const count = this.#differences.get(key) ?? { code, documented, requests: 0 };
      count.requests++;
      this.#differences.set(key, count);
    }
    if (shadow.wait !== null && tree.wait !== null) {
      this.#waits.push({ shadow: shadow.wait, tree: tree.wait });
      if (this.#waits.length > WAITS) this.#waits.shift();
    }
    const { nodeTypes: labels, requestor, createdTime: created } = record;
    this.#onRow({ request: id, labels, requestor, created, shadow, tree, differences });
  }

  #answerOf(decision: ShadowDecision, { record: { createdTime } }: RequestEntry): ShadowAnswer {
    const none = { pool: null, reused: 0, launched: 0, wait: null, reason: null };
    if (decision.kind === "decline") return { ...none, result: "refused", reason: decision.reason };
    if (decision.kind === "waits")
      return {
        ...none,
        result: decision.verdict === null ? "undecided" : "waits",
        reason: decision.verdict?.code ?? null,
      };
    const { pool, nodes } = decision;
    const launches = nodes.filter((node) => !("reuse" in node));
    const longest = Math.max(0, ...launches.map(({ label }) => this.#launchS(pool, label)));
    const decided = this.#clock.now() / 1_000;
    return {
      ...none,
      result: "served",
      pool,
      reused: nodes.length - launches.length,
      launched: launches.length,
      wait: createdTime === null ? null : seconds(decided - createdTime + longest),
    };
  }

  #launchS(key: string, label: string): number {
    const [provider, pool] = poolOf(key);
    const demand = { requests: [], nodes: this.#launches, quotas: new Map() };
    this.#experience ??= new Experience(demand, this.#seed++);
    const ms = this.#experience.launchMs({ provider, pool, label });
    for (const sentence of this.#experience.assumed) this.#assumed.add(sentence);
    return ms / 1_000;
  }
}

/** What became of a request; `after`: its last record, undefined where it was deleted unanswered. */
function treeAnswer(
  view: View,
  { entry, states, nodes }: Followed,
  after: RequestEntry | undefined,
): TreeAnswer {
  const { record } = entry;
  const own = after?.record.state === "fulfilled" ? record.nodes : [...nodes.keys()];
  const reused = own.filter((id) => nodes.get(id) === true).length;
  const first = own.map((id) => view.nodes.byId.get(id)?.record).find((node) => node !== undefined);
  const served = after?.record.state === "fulfilled";
  const { createdTime, stateTime } = record;
  return {
    result: after === undefined ? "withdrawn" : served ? "served" : "refused",
    pool: first === undefined ? null : poolKey(first.provider, first.pool),
    reused,
    launched: own.length - reused,
    wait: served && createdTime !== null && stateTime !== null ? seconds(stateTime - createdTime) : null,
    declined_by: record.declinedBy,
    nodes: own,
    states,
  };
}

/** Two clocks may be apart by more than a wait lasts. */
function seconds(value: number): number {
  return Math.max(0, Math.round(value * 10) / 10);
}
