import { borneSince, costBetween, type NodeRecord, priceOf } from "@nodeyard/model";

/** What a tenant may spend in a month. */
export interface Budget {
  readonly amount: number;
  /** Code of ISO 4217. Nodes with prices in another currency cost nothing of it. */
  readonly currency: string;
  /** Where months begin at midnight: a name of the IANA list. */
  readonly timezone: string;
}

/** A calendar month in a time zone. */
export interface Month {
  /** As "2026-12". */
  readonly name: string;
  /** Its first moment, and that of the next one, milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
}

/** What nodes that a tenant has no more cost it in a month, as the ledger of the month says. */
export interface EndedCosts {
  readonly month: string;
  /** How many there were. */
  readonly nodes: number;
  /** By currency. */
  readonly amounts: Readonly<Record<string, number>>;
  /** Nodes that cost nothing, because nobody knew their price or it was in another currency. */
  readonly unpriced: number;
}

/** How a tenant stands with its budget at a moment. */
export interface BudgetUse extends Budget {
  readonly month: Month;
  readonly spent: number;
  /** What the nodes that it has cost now. */
  readonly perHour: number;
  /** Nodes of the month, past and present, that cost nothing because their price is not known. */
  readonly unpriced: number;
  /** When the first of the nodes that have gone, and that the ledger may not have yet, counts no more: tree time, milliseconds. */
  readonly settles?: number;
}

/** The part of a budget at which launchers warn. */
export const NEAR = 0.8;

/** How much of a budget is used: `near` from four fifths on. */
export type BudgetLevel = "free" | "near" | "used";

export function levelOf({ spent, amount }: BudgetUse): BudgetLevel {
  if (spent >= amount) return "used";
  return spent >= NEAR * amount ? "near" : "free";
}

/** The month at a moment; `known` is returned where it still is the one. */
export function monthAt(now: number, timezone: string, known?: Month): Month {
  if (known !== undefined && now >= known.from && now < known.until) return known;
  const format = new Intl.DateTimeFormat("en", { timeZone: timezone, ...DIGITS, hourCycle: "h23" });
  const here = new Date(wallTime(now, format));
  const [year, month] = [here.getUTCFullYear(), here.getUTCMonth()];
  const [from, until] = [month, month + 1].map((one) => instantOf(Date.UTC(year, one, 1), format));
  return { name: here.toISOString().slice(0, 7), from: from!, until: until! };
}

const DIGITS: Intl.DateTimeFormatOptions = {
  ...{ year: "numeric", month: "numeric", day: "numeric" },
  ...{ hour: "numeric", minute: "numeric", second: "numeric" },
};

/** What a clock on the wall shows at an instant, as if that were UTC. */
function wallTime(at: number, format: Intl.DateTimeFormat): number {
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const [year, month, ...rest] = (["year", "month", "day", "hour", "minute", "second"] as const).map(
    (type) => parts.get(type) ?? 0,
  );
  return Date.UTC(year!, month! - 1, ...rest);
}

/** The instant at which the clock shows `wall`. Twice, because the offset may be another one at the first guess. */
function instantOf(wall: number, format: Intl.DateTimeFormat): number {
  const guess = wall - (wallTime(wall, format) - wall);
  return guess - (wallTime(guess, format) - wall);
}

/** Prices are summed as whole millionths, and times as whole seconds: sums of fractions would not come back to zero with the nodes. */
const MILLION = 1_000_000;

interface Held {
  readonly tenant: string;
  /** Millionths per hour; 0: not known. */
  readonly rate: number;
  readonly since: number;
  readonly isUnpriced: boolean;
}

/** A node that the tenant has no more. */
interface Gone extends Held {
  readonly ended: number;
}

/** Longer than a ledger's new value and what was written to a node with it are apart when they are heard. */
const SETTLED_MS = 10_000;

interface Account {
  readonly budget: Budget;
  month: Month;
  readonly nodes: Map<string, Held>;
  /** The ones of which the ledger's new value has not been heard, and since when those are in the ledger of which only that has been heard. */
  gone: readonly Gone[];
  booked: readonly number[];
  /** Of `nodes`: the sum of their rates, and that of rate by the seconds from the begin of the month to the begin of each node. */
  rate: number;
  weighted: number;
  unpriced: number;
}

/**
 * What tenants with a budget have spent this month: the ledger of what is over, and the nodes that they have now, by their records
 * (docs/design/shares.md). The tree has both, so all launchers compute the same.
 */
export class Spending {
  readonly #accounts = new Map<string, Account>();
  /** Tenant by node. */
  readonly #holders = new Map<string, string>();
  /** The last ledger of each tenant, for tenants without a budget as well: one may be configured later. */
  readonly #ended = new Map<string, EndedCosts>();
  /** Tree time of the turn, milliseconds. */
  now = 0;

  /** New budgets. The nodes that there are have to be set anew. */
  configure(budgets: ReadonlyMap<string, Budget>): void {
    this.#accounts.clear();
    this.#holders.clear();
    for (const [tenant, budget] of budgets) {
      const month = monthAt(this.now, budget.timezone);
      this.#accounts.set(tenant, {
        budget,
        month,
        nodes: new Map(),
        gone: [],
        booked: [],
        rate: 0,
        weighted: 0,
        unpriced: 0,
      });
    }
  }

  /** Names of the tenants with a budget. */
  get tenants(): Iterable<string> {
    return this.#accounts.keys();
  }

  /**
   * A node costs the tenant whose request it is allocated to; undefined: it is gone. Returns the tenants with a budget for whom something may
   * have changed.
   */
  setNode(id: string, record: NodeRecord | undefined): ReadonlySet<string> {
    const changed = new Set<string>();
    if (this.#accounts.size === 0) return changed;
    const former = this.#accounts.get(this.#holders.get(id) ?? "");
    const held = former?.nodes.get(id);
    if (former !== undefined && held !== undefined) {
      former.nodes.delete(id);
      this.#holders.delete(id);
      count(former, held, -1);
      changed.add(held.tenant);
      if (!isBorne(record, held)) this.#settle(former, [{ ...held, ended: this.now }], []);
    }
    const tenant = record?.allocatedTo == null ? null : record.tenantName;
    const account = tenant === null ? undefined : this.#accounts.get(tenant);
    if (record === undefined || tenant === null || account === undefined) return changed;
    const price = priceOf(record);
    const isPriced = price?.currency === account.budget.currency;
    const rate = isPriced ? Math.round(price.perHour * MILLION) : 0;
    // While a node is made, nobody has asked for its price.
    const isUnpriced = !isPriced && !["init", "building", "testing"].includes(record.state);
    const added = { tenant, rate, since: borneSince(record) ?? this.now, isUnpriced };
    account.nodes.set(id, added);
    this.#holders.set(id, tenant);
    count(account, added, 1);
    return changed.add(tenant);
  }

  /** The ledger of a month; undefined: there is none. Of an older month than the one that is known it is left out. */
  setEnded(tenant: string, month: string, ended: EndedCosts | undefined): void {
    const known = this.#ended.get(tenant);
    if (ended === undefined) {
      if (known?.month === month) this.#ended.delete(tenant);
    } else if (known === undefined || known.month <= month) this.#ended.set(tenant, ended);
    const account = this.#accounts.get(tenant);
    if (account === undefined || ended === undefined) return;
    const before = known?.month === month ? known.nodes : 0;
    const booked = Array.from({ length: Math.max(0, ended.nodes - before) }, () => this.now);
    this.#settle(account, [], booked);
    // The first value may be as old as the month: of which nodes, nobody knows.
    if (before === 0) account.booked = account.booked.slice(0, 1);
  }

  /**
   * A node that goes and the ledger with its cost are written in one commit, and heard one after the other. Each settles the other; what the
   * other does not follow is given up: nodes deleted by hand, and those of which no record was seen.
   */
  #settle(account: Account, gone: readonly Gone[], booked: readonly number[]): void {
    // What is later than now is from before a clock was put back, and would count until that time comes again.
    const isFresh = (at: number) => at > this.now - SETTLED_MS && at <= this.now;
    const allGone = [...account.gone, ...gone].filter(({ ended }) => isFresh(ended));
    const allBooked = [...account.booked, ...booked].filter(isFresh);
    const both = Math.min(allGone.length, allBooked.length);
    account.gone = allGone.slice(both);
    account.booked = allBooked.slice(both);
  }

  /** At the time of the turn; undefined: the tenant has no budget. */
  useOf(tenant: string): BudgetUse | undefined {
    const account = this.#accounts.get(tenant);
    if (account === undefined) return undefined;
    const { budget } = account;
    const month = monthAt(this.now, budget.timezone, account.month);
    if (month !== account.month) begin(account, month);
    const ended = this.#ended.get(tenant);
    const over = ended?.month === month.name ? ended : undefined;
    const seconds = (this.now - month.from) / 1_000;
    const perHour = account.rate / MILLION;
    this.#settle(account, [], []);
    const unsettled = account.gone.reduce(
      (sum, { rate, since, ended }) =>
        sum + costBetween({ perHour: rate / MILLION }, Math.max(since, month.from), ended),
      0,
    );
    // Seconds become hours, as a price has them.
    const running = costBetween(
      { perHour: 1 / MILLION },
      0,
      (account.rate * seconds - account.weighted) * 1_000,
    );
    return {
      ...budget,
      month,
      spent: (over?.amounts[budget.currency] ?? 0) + running + unsettled,
      perHour,
      unpriced: account.unpriced + (over?.unpriced ?? 0),
      ...(account.gone[0] !== undefined && { settles: account.gone[0].ended + SETTLED_MS }),
    };
  }
}

/** Whether a record still says what was held, of which no ledger knows. */
function isBorne(record: NodeRecord | undefined, { tenant, since }: Held): boolean {
  if (record?.allocatedTo == null || record.tenantName !== tenant) return false;
  return (borneSince(record) ?? since) <= since;
}

/** Another month: what nodes cost before it does not count. */
function begin(account: Account, month: Month): void {
  account.month = month;
  account.rate = account.weighted = account.unpriced = 0;
  for (const held of account.nodes.values()) count(account, held, 1);
}

function count(account: Account, { rate, since, isUnpriced }: Held, by: 1 | -1): void {
  account.rate += by * rate;
  account.weighted += by * rate * Math.max(0, Math.round((since - account.month.from) / 1_000));
  if (isUnpriced) account.unpriced += by;
}
