import { borneSince, costBetween, priceOf, spendingAt } from "@nodeyard/model";
import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay, Znode } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

export interface BudgetSetting {
  readonly tenant: string;
  readonly amount: number;
  readonly currency: string;
}

/** Launchers may believe for so long that less is spent: they see a write later, and their time may be off by a jump; milliseconds. */
const BELIEVED_MS = 60_000;
/** A launcher that has lost an event learns of it by the next resync, milliseconds. */
const RESYNC_MS = 90_000;

/** What a ledger of a month says. */
type Ledger = Readonly<Record<string, number>>;

/** Budgets: what a node cost is in the ledger with the write that takes it from its tenant, once, and no request begins when all is spent. */
export class BudgetsHold implements Rule {
  readonly #setting: BudgetSetting;
  #ledger: Ledger = {};
  /** Nodes that the present write takes from the tenant. */
  #taken: Znode[] = [];
  /** Requests of the tenant that the present write accepts. */
  #accepted: string[] = [];
  /** Since when the budget is used up, by a clock that never jumps. */
  #usedSince: number | undefined;
  #isCalm = false;

  constructor(setting: BudgetSetting) {
    this.#setting = setting;
  }

  onNode({ before, after, write }: Change): void {
    if (!isLauncher(write.client) || before === undefined || !this.#isTheirs(before)) return;
    if (after === undefined || !this.#isTheirs(after) || after.data.allocated_to !== before.data.allocated_to)
      this.#taken.push(before);
  }

  onRequest({ id, before, after, write }: Change): void {
    const begins = stateOf(before) === "requested" && stateOf(after) === "pending";
    if (begins && isLauncher(write.client) && after!.data.tenant_name === this.#setting.tenant)
      this.#accepted.push(id);
  }

  onWrite(write: AppliedWrite, replay: Replay): void {
    const [taken, accepted, before] = [this.#taken, this.#accepted, this.#ledger];
    [this.#taken, this.#accepted] = [[], []];
    this.#ledger = this.#after(write) ?? before;
    this.#checkLedger(write, taken, before, replay);
    const late = replay.now - (this.#usedSince ?? replay.now) > BELIEVED_MS;
    const missed = replay.now - (replay.missed.get(write.client) ?? Number.NEGATIVE_INFINITY) < RESYNC_MS;
    if (accepted.length > 0 && late && !missed && !this.#isCalm && !replay.setFar)
      throw new Broken("no request begins when its tenant's budget is used up", write, `${accepted}`);
    const isUsed = this.#spent(write.at, replay) >= this.#setting.amount;
    if (!isUsed) this.#usedSince = undefined;
    else this.#usedSince ??= replay.now;
  }

  /** The operator raises the budget, so that what waits is served. */
  onCalm(): void {
    this.#isCalm = true;
  }

  #checkLedger(write: AppliedWrite, taken: readonly Znode[], before: Ledger, replay: Replay): void {
    const { currency } = this.#setting;
    const more = (name: string) => (this.#ledger[name] ?? 0) - (before[name] ?? 0);
    const rate = taken.reduce((sum, node) => sum + (this.#priceOf(node)?.perHour ?? 0), 0);
    const cost = taken.reduce((sum, node) => sum + this.#costOf(node, write.at), 0);
    // A clock that is set by hours may make it less, and once it is believed it makes it anything.
    const isRight =
      replay.setFar ||
      Math.abs(more(currency) - cost) <= costBetween({ perHour: rate }, 0, BELIEVED_MS) + 1e-9;
    if (more("instances") === taken.length && isRight) return;
    const facts = { nodes: taken.length, cost, before, after: this.#ledger };
    throw new Broken("what a node cost its tenant is in the ledger, once", write, JSON.stringify(facts));
  }

  /** The ledger as the write leaves it; undefined: it does not touch it. */
  #after({ ops }: AppliedWrite): Ledger | undefined {
    for (const op of ops) {
      if (op.op === "check" || op.op === "delete") continue;
      if (spendingAt(op.path)?.tenant === this.#setting.tenant)
        return JSON.parse(Buffer.from(op.data ?? "{}").toString()) as Ledger;
    }
    return undefined;
  }

  #spent(now: number, { nodes }: Replay): number {
    let sum = this.#ledger[this.#setting.currency] ?? 0;
    for (const node of nodes.values()) if (this.#isTheirs(node)) sum += this.#costOf(node, now);
    return sum;
  }

  #isTheirs({ data }: Znode): boolean {
    return (data.allocated_to ?? null) !== null && data.tenant_name === this.#setting.tenant;
  }

  #costOf(node: Znode, now: number): number {
    const { driver_data: driverData, created_time } = node.data;
    const since = borneSince({ driverData, createdTime: (created_time ?? null) as number | null });
    return costBetween(this.#priceOf(node) ?? { perHour: 0 }, since ?? now, now);
  }

  #priceOf({ data }: Znode) {
    const price = priceOf({ driverData: data.driver_data });
    return price?.currency === this.#setting.currency ? price : undefined;
  }
}
