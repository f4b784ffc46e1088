import type { ShareWeights } from "@nodeyard/scheduler";
import type { AppliedWrite } from "@nodeyard/tree";
import { AskedFor } from "./asked.ts";
import { type BudgetSetting, BudgetsHold } from "./budgets.ts";
import { Changes } from "./changes.ts";
import { Commits } from "./commits.ts";
import { Delivery } from "./delivery.ts";
import type { Effect } from "./effect.ts";
import { HoldLengths } from "./holds.ts";
import { Images } from "./images.ts";
import { LeaseLengths } from "./leases.ts";
import { type Limits, LimitsHold } from "./limits.ts";
import type { Locks } from "./locks.ts";
import { Machines } from "./machines.ts";
import { MinReady } from "./min-ready.ts";
import { type IsDead, Order } from "./order.ts";
import { Registry } from "./registry.ts";
import { type Change, Replay, type Znode } from "./replay.ts";
import { HostsRest } from "./rest.ts";
import { type Reused, ReusedNodes } from "./reuse.ts";
import { type Rule, stateOf } from "./rule.ts";
import { SetsAreWhole } from "./sets.ts";
import { SharesHold } from "./shares.ts";
import { Slots } from "./slots.ts";
import { type ExpectedFields, Usable } from "./usable.ts";

/** What the checks need to know of the configuration. */
export interface Setting extends Limits {
  /** The provider whose nodes are slots. */
  readonly slicer?: string;
  /** The pool whose nodesets have one zone each. */
  readonly zoned?: string;
  /** The provider whose nodes are existing hosts. */
  readonly hosts?: string;
  /** Attributes of a ready node, by label. */
  readonly expected?: ReadonlyMap<string, ExpectedFields>;
  /** Weights; absent: requests of one priority are served by age. */
  readonly shares?: ShareWeights | undefined;
  /** Labels whose nodes are used again. */
  readonly reused?: ReadonlyMap<string, Reused>;
  /** Absent: no tenant has one. */
  readonly budget?: BudgetSetting | undefined;
  /** By label. */
  readonly minReady?: ReadonlyMap<string, number>;
  readonly isDead?: IsDead;
}

/** A jump of a clock above this is noticed (rule 8), milliseconds. */
const NOTICED_MS = 30_000;

export type Moved = (
  kind: "node" | "request",
  id: string,
  from: string | null,
  to: string | null,
  write: AppliedWrite,
) => void;

/** Replays every applied write of a run, and the calls of clouds between them, and checks each against the rules: one file each. */
export class LogCheck {
  readonly #replay = new Replay();
  readonly #rules: readonly Rule[];
  readonly #moved: Moved;

  /** `moved` is called with every state transition. */
  constructor(setting: Setting, moved: Moved = () => {}) {
    this.#moved = moved;
    this.#rules = [
      new Commits(),
      new Changes(),
      new Images(),
      new Registry(),
      new Delivery(setting.zoned),
      new Slots(setting.slicer),
      new LimitsHold(setting),
      new Machines(),
      new AskedFor(),
      new Usable(setting.expected),
      new HostsRest(setting.hosts),
      new LeaseLengths(),
      new SetsAreWhole(),
      new Order(setting.shares !== undefined, setting.isDead),
      ...(setting.shares === undefined ? [] : [new SharesHold(setting.shares, setting.tenants)]),
      ...(setting.budget === undefined ? [] : [new BudgetsHold(setting.budget)]),
      new HoldLengths(),
      new ReusedNodes(setting.reused),
      ...(setting.minReady === undefined ? [] : [new MinReady(setting.minReady)]),
    ];
  }

  /** The wall clock of one launcher jumped, milliseconds. */
  jumped(client: string, ms: number): void {
    const size = Math.abs(ms);
    const { believed } = this.#replay;
    if (size > NOTICED_MS) this.#replay.setFar = true;
    if (size <= NOTICED_MS) believed.set(client, (believed.get(client) ?? 0) + size);
  }

  /** A launcher lost an event of the tree at this time, milliseconds: the change is seen at the next resync. */
  missed(client: string, at: number): void {
    this.#replay.missed.set(client, at);
  }

  get nodes(): ReadonlyMap<string, Znode> {
    return this.#replay.nodes;
  }

  get requestLocks(): Pick<Locks, "holder"> {
    return this.#replay.requestLocks;
  }

  get requests(): ReadonlyMap<string, Znode> {
    return this.#replay.requests;
  }

  /** `at`: when it was written, by a clock that never jumps; milliseconds. */
  take(write: AppliedWrite, at = write.at): void {
    const replay = this.#replay;
    const tell = (kind: "node" | "request", change: Change) => {
      for (const rule of this.#rules)
        if (kind === "node") rule.onNode?.(change, replay);
        else rule.onRequest?.(change, replay);
      const [from, to] = [stateOf(change.before), stateOf(change.after)];
      // An operator may remove an unreadable record, whatever its state was.
      const isRemoval = change.before?.damaged === true && change.after === undefined;
      if (from !== to && !isRemoval) this.#moved(kind, change.id, from, to, write);
    };
    replay.take(write, at, {
      node: (change) => tell("node", change),
      request: (change) => tell("request", change),
    });
    for (const rule of this.#rules) rule.onWrite?.(write, replay);
  }

  /** Call it between the writes before and after which the effect happened. */
  takeEffect(effect: Effect): void {
    for (const rule of this.#rules) rule.onEffect?.(effect, this.#replay);
  }

  /** The faults are over. */
  calm(): void {
    for (const rule of this.#rules) rule.onCalm?.(this.#replay);
  }
}
