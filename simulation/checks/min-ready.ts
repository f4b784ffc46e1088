import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay, Znode } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/** A lost event is repaired by a resync, and a clock that jumped is believed, milliseconds. */
const SETTLED_MS = 120_000;
/**
 * An idle node that is deleted to make room is requested again at once, and locked a moment later; until then, one whose lock was taken and
 * released seemed to be in deletion. Milliseconds.
 */
const GOING_MS = 5_000;

const CONTENDER = /^\/nodepool\/nodes\/(\d{10})\/lock\/./;

interface RequestMemory {
  readonly label: string;
  readonly at: number;
  /** The other nodes that were enough without it. */
  readonly idle: readonly string[];
}

/** Promise to the operator: once the faults are over, no more nodes are launched ahead of requests than `min-ready` says. */
export class MinReady implements Rule {
  /** By label. */
  readonly #wanted: ReadonlyMap<string, number>;
  #settledAt = Number.POSITIVE_INFINITY;
  /** Requests that seem to be surplus, by id. */
  readonly #doubtful = new Map<string, RequestMemory>();
  /** When a node last lost a contender, by node. */
  readonly #unlockedAt = new Map<string, number>();

  constructor(wanted: ReadonlyMap<string, number>) {
    this.#wanted = wanted;
  }

  onCalm({ now }: Replay): void {
    this.#settledAt = now + SETTLED_MS;
  }

  onRequest({ id, before, after, write }: Change, replay: Replay): void {
    if (before !== undefined || !id.startsWith("900-") || !isLauncher(write.client)) return;
    const [label] = after!.data.node_types as [string];
    const wanted = this.#wanted.get(label);
    if (wanted === undefined)
      throw new Broken("only labels with min-ready are kept ready", write, `${id}: ${label}`);
    if (replay.now < this.#settledAt) return;
    const idle = [...replay.nodes.keys()].filter(
      (node) =>
        isIdle(replay, node, label) &&
        replay.now - (this.#unlockedAt.get(node) ?? Number.NEGATIVE_INFINITY) > GOING_MS,
    );
    const asked = [...replay.requests].filter(
      ([other, { data }]) => other.startsWith("900-") && (data.node_types as string[])[0] === label,
    ).length;
    if (idle.length + asked > wanted) this.#doubtful.set(id, { label, at: replay.now, idle });
  }

  onWrite(write: AppliedWrite, replay: Replay): void {
    for (const { op, path } of write.ops) {
      const node = op === "delete" ? CONTENDER.exec(path)?.[1] : undefined;
      if (node !== undefined) this.#unlockedAt.set(node, replay.now);
    }
    for (const [id, { label, at, idle }] of this.#doubtful) {
      if (!idle.every((node) => isIdle(replay, node, label))) this.#doubtful.delete(id);
      else if (replay.now - at > GOING_MS)
        throw new Broken("no more is kept ready than min-ready", write, `${label}: ${id}, beside ${idle}`);
    }
  }
}

/** A node that only its last user may have is nobody's spare. */
function isKept({ data }: Znode): boolean {
  const { nodeyard } = (data.driver_data ?? {}) as {
    readonly nodeyard?: { readonly reuse?: { only?: unknown } };
  };
  return nodeyard?.reuse?.only !== undefined;
}

function isIdle({ nodes, nodeLocks }: Replay, id: string, label: string): boolean {
  const node = nodes.get(id);
  // What an unreadable record said before is known to this check, but to no launcher (docs/design/unreadable-records.md).
  if (node?.damaged === true) return false;
  const free = stateOf(node) === "ready" && (node!.data.allocated_to ?? null) === null && !isKept(node!);
  // A locked node is about to be given away, or replaced.
  return free && nodeLocks.holder(id) === undefined && (node!.data.type as string[]).includes(label);
}
