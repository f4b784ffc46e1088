import type { AppliedWrite, Op } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Moment, Replay } from "./replay.ts";
import { isLauncher, type Rule } from "./rule.ts";
import { LATE_MS, passed, saidAt } from "./time.ts";

const LEASE = /^\/nodeyard\/leases\/([^/]+)$/;
/** The client writes into the owner for how long it asked: `cli@for-5000`. */
const FOR = /@for-(\d+)$/;

interface Open {
  readonly forMs: number;
  readonly since: Moment;
  /** Its owner released it, or no pool could serve it. */
  over: boolean;
}

/** Promise to the client: a lease is not ended before its time, unless its owner releases it, nor held for long after it. */
export class LeaseLengths implements Rule {
  readonly #open = new Map<string, Open>();
  #calmSince = Number.POSITIVE_INFINITY;

  onCalm({ now }: Replay): void {
    this.#calmSince = now;
  }

  onWrite(write: AppliedWrite, replay: Replay): void {
    for (const op of write.ops) {
      const id = LEASE.exec(op.path)?.[1];
      if (id === undefined || op.op === "check") continue;
      const lease = this.#open.get(id);
      const { state, owner } = op.op === "delete" ? ENDED : read(op.data);
      if (lease === undefined) {
        const forMs = FOR.exec(owner)?.[1];
        if (op.op === "create" && forMs !== undefined)
          this.#open.set(id, { forMs: Number(forMs), since: askedAt(op, write, replay), over: false });
        continue;
      }
      if (state === "failed" || !isLauncher(write.client))
        lease.over ||= state === "failed" || state === "released";
      if (state === "released") this.#checkNotEarly(id, lease, write, replay);
      if (op.op === "delete") this.#open.delete(id);
    }
    this.#checkNotLate(write, replay);
  }

  #checkNotEarly(id: string, lease: Open, write: AppliedWrite, replay: Replay): void {
    const ms = passed(lease.since, write, replay);
    const off = replay.believed.get(write.client) ?? 0;
    if (!lease.over && Math.ceil(ms) + off < lease.forMs)
      throw new Broken("a lease lasts its time", write, `${id}: ended after ${ms} ms of ${lease.forMs}`);
    lease.over = true;
  }

  #checkNotLate(write: AppliedWrite, { now }: Replay): void {
    for (const [id, { since, forMs }] of this.#open) {
      const late = now - Math.max(since.steady + forMs, this.#calmSince);
      if (late > LATE_MS)
        throw new Broken("a lease ends when its time is over", write, `${id}: ${late} ms late`);
    }
  }
}

/** Counted from the client's request, a little before its record existed. */
function askedAt(op: Extract<Op, { op: "create" }>, write: AppliedWrite, replay: Replay): Moment {
  const { created } = JSON.parse(Buffer.from(op.data ?? "").toString()) as { created: number };
  return saidAt(created, write, replay);
}

const ENDED = { state: "released", owner: "" };

function read(data: Uint8Array | undefined): { readonly state: string; readonly owner: string } {
  return JSON.parse(Buffer.from(data ?? "{}").toString()) as { state: string; owner: string };
}
