import type { AppliedWrite, Op } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Replay, Znode } from "./replay.ts";
import type { Rule } from "./rule.ts";

const SLOT = /^\/nodeyard\/slots\/(\d{10})\/(\d+)$/;
const NODE = /^\/nodepool\/nodes\/(\d{10})$/;

/** States in which a node has the slot that its record names. */
const HAS: ReadonlySet<unknown> = new Set(["testing", "ready", "in-use", "used", "hold"]);
/** The slot of a node whose user's session was lost is given to no other node for 60 s (rule 1), milliseconds. */
const REST_MS = 60_000;
/** A launcher reads a node's record and its lock at different moments: it may never see the lock of a user who left this soon, milliseconds. */
const UNSEEN_MS = 500;

interface Claim {
  readonly backing: string;
  readonly slot: number;
  readonly node: string;
}

/**
 * Rule 1, for slots of backing nodes: a slot has one node, record and claim agree, no slot number is above the backing node's number of
 * slots, and a slot whose user's session was lost rests.
 */
export class Slots implements Rule {
  /** By path. */
  readonly claims = new Map<string, Claim>();
  readonly #provider: string;
  /** When the use of a node began whose user left without returning it, and when that was. */
  readonly #deserted = new Map<string, { readonly began: number; readonly end: number }>();
  /** Since when a node is in use. */
  readonly #used = new Map<string, number>();

  constructor(provider = "") {
    this.#provider = provider;
  }

  onWrite(write: AppliedWrite, { nodes, nodeLocks, now, left, missed }: Replay): void {
    const looked = new Set<string>();
    for (const node of left)
      if (this.#isUsed(nodes.get(node)))
        this.#deserted.set(node, { began: this.#used.get(node) ?? now, end: now });
    for (const op of write.ops) {
      const node = NODE.exec(op.path)?.[1];
      if (node !== undefined && op.op !== "check") this.#node(write, node, nodes, looked, now);
      const slot = SLOT.exec(op.path);
      if (slot === null || op.op === "check") continue;
      const before = this.claims.get(op.path);
      if (before !== undefined) looked.add(before.node);
      if (op.op === "delete") this.#free(write, op.path, now, missed.get(write.client));
      else {
        const claim = { backing: slot[1]!, slot: Number(slot[2]), node: nodeOf(op) };
        this.#claim(write, claim, nodes);
        this.claims.set(op.path, claim);
        looked.add(claim.node);
      }
    }
    // A launcher that makes or deletes a node holds its lock meanwhile: no client has been given it.
    for (const id of looked) {
      const node = nodes.get(id);
      if (node?.data.state !== "ready" || nodeLocks.holder(id) !== write.client)
        this.#checkNode(write, id, node);
    }
  }

  #node(
    write: AppliedWrite,
    id: string,
    nodes: ReadonlyMap<string, Znode>,
    looked: Set<string>,
    now: number,
  ): void {
    looked.add(id);
    const data = nodes.get(id)?.data;
    if (data?.state !== "in-use") this.#used.delete(id);
    else if (!this.#used.has(id)) this.#used.set(id, now);
    // Its user returned it, or it is gone.
    if (data === undefined || data.state === "used" || data.state === "hold") this.#deserted.delete(id);
    if (data?.state === "in-use") return;
    const left = [...this.claims.values()].find(({ backing }) => backing === id);
    // A claim that is deleted in the same write comes after its backing node.
    const frees = write.ops.some((op) => op.op === "delete" && op.path.startsWith(`/nodeyard/slots/${id}/`));
    if (left !== undefined && !frees) {
      const what = `${id} (${data?.state ?? "gone"}) carries ${left.node}`;
      throw new Broken("a backing node stays while it has slots", write, what);
    }
  }

  #claim(write: AppliedWrite, { backing, slot, node }: Claim, nodes: ReadonlyMap<string, Znode>): void {
    const data = nodes.get(backing)?.data;
    const use = useOf(data);
    if (data?.state !== "in-use" || use === undefined || use.failed)
      throw new Broken("a slot is of a backing node in use", write, `${node}: ${JSON.stringify(data)}`);
    if (slot >= use.slots)
      throw new Broken("no more slots than there are", write, `${node}: slot ${slot} of ${use.slots}`);
  }

  /** `missed`: when the launcher last lost an event. Of a lock that it may not have seen, it only knows when the use began. */
  #free(write: AppliedWrite, path: string, now: number, missed = Number.NEGATIVE_INFINITY): void {
    const claim = this.claims.get(path);
    this.claims.delete(path);
    const use = this.#deserted.get(claim?.node ?? "");
    if (use === undefined) return;
    this.#deserted.delete(claim!.node);
    const isUnseen = use.end - use.began < UNSEEN_MS || missed >= use.began - UNSEEN_MS;
    const since = isUnseen ? use.began : use.end;
    if (now - since < REST_MS)
      throw new Broken("a deserted slot rests", write, `${path}: after ${Math.round(now - since)} ms`);
  }

  #isUsed(node: Znode | undefined): boolean {
    return node?.data.provider === this.#provider && node.data.state === "in-use";
  }

  #checkNode(write: AppliedWrite, id: string, node: Znode | undefined): void {
    if (node?.data.provider !== this.#provider || !HAS.has(node.data.state)) return;
    const place = node.data.driver_data as { backing_node?: string; slot?: number } | null;
    // An operator held it after it had failed, before it had slots.
    if (node.data.state === "hold" && typeof place?.backing_node !== "string") return;
    const claim = this.claims.get(`/nodeyard/slots/${place?.backing_node}/${place?.slot}`);
    if (claim?.node !== id) {
      const what = `${id} (${node.data.state}): ${JSON.stringify(place)} is ${claim?.node ?? "nobody"}'s`;
      throw new Broken("a slot has one node", write, what);
    }
  }
}

function nodeOf(op: Extract<Op, { op: "create" | "set" }>): string {
  return String((JSON.parse(Buffer.from(op.data ?? "{}").toString()) as { node?: string }).node);
}

/** What a backing node's record says about its slots. */
function useOf(
  data: Znode["data"] | undefined,
): { readonly slots: number; readonly failed: boolean } | undefined {
  const text = data?.user_data;
  return typeof text === "string" ? (JSON.parse(text) as { slots: number; failed: boolean }) : undefined;
}
