import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Action, type Budget, explain, type Month, monthAt, type SchedulerEvent } from "../src/index.ts";
import { policy, pool, SchedulerFixture } from "./world.ts";

const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 10, 10);
const DECEMBER = Date.UTC(2026, 11, 1);
const budget = (fields: Partial<Budget> = {}) =>
  new Map([["t1", { amount: 10, currency: "EUR", timezone: "UTC", ...fields }]]);
const fields = { tenant_name: "t1" };

function priced(perHour: number | null, since: number, more: object = {}): object {
  const price = perHour !== null && { price: { per_hour: perHour, currency: "EUR" } };
  return {
    ...{ state: "in-use", tenant_name: "t1", allocated_to: "100-9", created_time: since / 1_000 },
    ...{ driver_data: { nodeyard: { ...price } }, ...more },
  };
}

function accepted(actions: readonly Action[]): readonly string[] {
  return actions.flatMap((action) => (action.type === "accept" ? [action.request] : []));
}

function started(budgets = budget()): SchedulerFixture {
  const fixture = new SchedulerFixture(policy([pool()]));
  fixture.now = START;
  fixture.tell({ type: "policy", policy: policy([pool()], { budgets }) });
  return fixture;
}

describe("a budget that is used up", () => {
  test("lets requests of its tenant wait until the next month, and those of others pass", () => {
    const fixture = started();
    fixture.node("1", priced(1, START), ["c"]);
    fixture.now += 9 * HOUR_MS;
    expect(accepted(fixture.request("100-1", fields))).toEqual(["100-1"]);
    fixture.now += HOUR_MS;
    expect(accepted(fixture.request("100-2", fields))).toEqual([]);
    expect(accepted(fixture.request("100-3", { tenant_name: "t2" }))).toEqual(["100-3"]);
    expect(accepted(fixture.request("100-4"))).toEqual(["100-4"]);
    expect(explain(fixture.state, "100-2")).toMatchObject({
      code: "budget.used",
      facts: {
        tenant: "t1",
        spent: 10,
        budget: 10,
        currency: "EUR",
        begins_anew: "2026-12-01T00:00:00.000Z",
      },
      nextTry: DECEMBER,
    });
    expect(accepted(fixture.wait(DECEMBER - 1 - fixture.now))).toEqual([]);
    expect(accepted(fixture.wait(1))).toEqual(["100-2"]);
    // What the node cost before is the old month's, and what it costs now is the new one's.
    fixture.now += 10 * HOUR_MS - 1;
    expect(accepted(fixture.request("100-5", fields))).toEqual(["100-5"]);
    fixture.now += 1;
    expect(accepted(fixture.request("100-6", fields))).toEqual([]);
  });

  test("ends what a request waits for otherwise: what was kept for it is the others'", () => {
    const lab = pool({ provider: "lab", launches: false, labels: new Set(["board"]) });
    const given = policy([{ ...lab, inventory: new Map([["board", 2]]) }], { budgets: budget() });
    const fixture = new SchedulerFixture(given);
    fixture.now = START;
    fixture.tell({ type: "policy", policy: { ...given, budgets: budget({ amount: 9 }) } });
    const board = { provider: "lab", type: ["board"] };
    fixture.node("1", { ...board, ...priced(1, START) }, ["c"]);
    fixture.node("2", board);
    fixture.request("100-1", { ...fields, node_types: ["board", "board"] });
    expect(accepted(fixture.request("100-2", { node_types: ["board"] }))).toEqual([]);
    expect(accepted(fixture.wait(9 * HOUR_MS))).toEqual(["100-2"]);
    expect(fixture.code("100-1")).toBe("budget.used");
  });

  test("is told once at four fifths, once at its end, and again in the next month; a raise frees the tenant at once", () => {
    const fixture = started();
    const levels = (actions: readonly Action[]) =>
      actions.flatMap((action) => (action.type === "budget-changed" ? [action.level] : []));
    fixture.tell({ type: "sweep" });
    fixture.node("1", priced(1, START), ["c"]);
    fixture.tell({ type: "sweep" });
    expect(levels(fixture.wait(8 * HOUR_MS - 1_000))).toEqual([]);
    expect(levels(fixture.wait(1_000))).toEqual(["near"]);
    expect(levels(fixture.tell({ type: "sweep" }))).toEqual([]);
    expect(levels(fixture.wait(2 * HOUR_MS))).toEqual(["used"]);
    fixture.request("100-1", fields);
    const raised = fixture.tell({
      type: "policy",
      policy: policy([pool()], { budgets: budget({ amount: 40 }) }),
    });
    expect([accepted(raised), levels(raised)]).toEqual([["100-1"], ["free"]]);
    expect(levels(fixture.wait(30 * HOUR_MS))).toEqual(["used"]);
    expect(levels(fixture.wait(DECEMBER - fixture.now))).toEqual(["free"]);
  });

  test("is told of nobody whose budget has not changed", () => {
    const fixture = started();
    fixture.node("1", priced(1, START), ["c"]);
    expect(fixture.wait(9 * HOUR_MS)).toMatchObject([
      { type: "budget-changed", tenant: "t1", level: "near" },
    ]);
    const others = new Map([...budget(), ["t2", budget().get("t1")!] as const]);
    expect(fixture.tell({ type: "policy", policy: policy([pool()], { budgets: others }) })).toEqual([]);
    // A tenant that has had none for a while is a new one.
    fixture.tell({ type: "policy", policy: policy([pool()], {}) });
    expect(fixture.state.timers.get("budget", "t1")).toBeUndefined();
    expect(fixture.tell({ type: "policy", policy: policy([pool()], { budgets: budget() }) })).toHaveLength(1);
  });

  test("is not looked at before the next month while its tenant has no node with a price", () => {
    const fixture = started();
    fixture.tell({ type: "sweep" });
    fixture.request("100-1", fields);
    const due = () => fixture.state.timers.get("budget", "t1");
    expect(due()).toBe(DECEMBER);
    fixture.node("1", priced(null, START), ["c"]);
    fixture.tell({ type: "sweep" });
    expect(due()).toBe(DECEMBER);
  });

  test("goes on as soon as the record of a node goes whose cost the ledger has already", () => {
    const fixture = started();
    fixture.node("1", priced(1, START), ["c"]);
    fixture.wait(9 * HOUR_MS);
    const after = { month: "2026-11", nodes: 1, amounts: { EUR: 9 }, unpriced: 0 };
    fixture.tell({ type: "spent", tenant: "t1", month: "2026-11", after });
    expect(accepted(fixture.request("100-1", fields))).toEqual([]);
    expect(accepted(fixture.gone("node", "1"))).toEqual(["100-1"]);
    // In one turn it is not even noticed, in whichever order both arrive.
    for (const id of ["2", "3"]) fixture.node(id, priced(0.1, fixture.now), ["c"]);
    fixture.now += 3 * HOUR_MS;
    const ledger = (nodes: number, spent: number): SchedulerEvent => ({
      ...({ type: "spent", tenant: "t1", month: "2026-11" } as const),
      after: { ...after, nodes, amounts: { EUR: spent } },
    });
    expect(fixture.tell(ledger(2, 9.3), { type: "node", id: "2" })).toEqual([]);
    expect(fixture.tell({ type: "node", id: "3" }, ledger(3, 9.6))).toEqual([]);
  });

  test("counts a node that has gone until the ledger has it, or no ledger comes", () => {
    const fixture = started();
    for (const id of ["1", "2"]) fixture.node(id, priced(1, START), ["c"]);
    fixture.now += 5 * HOUR_MS;
    fixture.gone("node", "1");
    expect(accepted(fixture.request("100-1", fields))).toEqual([]);
    const after = { month: "2026-11", nodes: 1, amounts: { EUR: 4 }, unpriced: 0 };
    expect(accepted(fixture.tell({ type: "spent", tenant: "t1", month: "2026-11", after }))).toEqual([
      "100-1",
    ]);
    fixture.now += HOUR_MS;
    expect(accepted(fixture.request("100-2", fields))).toEqual([]);
    fixture.gone("node", "2");
    expect(accepted(fixture.wait(9_999))).toEqual([]);
    expect(accepted(fixture.wait(1))).toEqual(["100-2"]);
  });

  test("a node without a known price, or with one in another currency, costs nothing, and the verdict says how many", () => {
    const fixture = started();
    fixture.node("1", priced(null, START), ["c"]);
    const dollars = { nodeyard: { price: { per_hour: 50, currency: "USD" } } };
    fixture.node("2", priced(null, START, { driver_data: dollars }), ["c"]);
    fixture.node("3", priced(1, START), ["c"]);
    const ended = { month: "2026-11", nodes: 9, amounts: { EUR: 3, USD: 99 }, unpriced: 4 };
    fixture.tell({ type: "spent", tenant: "t1", month: "2026-11", after: ended });
    fixture.now += 7 * HOUR_MS;
    fixture.request("100-1", fields);
    expect(explain(fixture.state, "100-1")?.facts).toMatchObject({ spent: 10, unpriced: 6 });
  });

  test("a node that was given to the tenant costs it from then on", () => {
    const fixture = started();
    const data = { nodeyard: { price: { per_hour: 1, currency: "EUR" }, given_at: START + 5 * HOUR_MS } };
    fixture.node("1", priced(1, START, { driver_data: data }), ["c"]);
    fixture.now += 14 * HOUR_MS;
    expect(accepted(fixture.request("100-1", fields))).toEqual(["100-1"]);
    fixture.now += HOUR_MS;
    expect(accepted(fixture.request("100-2", fields))).toEqual([]);
  });
});

test("a month begins at midnight of its time zone", () => {
  const berlin = monthAt(Date.UTC(2026, 9, 31, 23), "Europe/Berlin");
  expect(berlin).toEqual({
    name: "2026-11",
    from: Date.UTC(2026, 9, 31, 23),
    until: Date.UTC(2026, 10, 30, 23),
  });
  expect(monthAt(Date.UTC(2026, 9, 31, 23), "UTC").name).toBe("2026-10");
  expect(monthAt(berlin.until - 1, "Europe/Berlin", berlin)).toBe(berlin);
  expect(monthAt(berlin.until, "Europe/Berlin", berlin).name).toBe("2026-12");
  // Winter time ends within the month, so that its ends have different offsets.
  const march = monthAt(Date.UTC(2026, 2, 15), "America/New_York");
  expect(march).toEqual({ name: "2026-03", from: Date.UTC(2026, 2, 1, 5), until: Date.UTC(2026, 3, 1, 4) });
  expect(monthAt(Date.UTC(2026, 11, 31, 12), "Pacific/Auckland").until).toBe(Date.UTC(2027, 0, 31, 11));
});

/** What happens in a random life of a tenant. */
type Step =
  | { readonly do: "wait"; readonly hours: number }
  | { readonly do: "node"; readonly id: number; readonly perHour: number }
  | { readonly do: "end"; readonly id: number; readonly isWritten: boolean }
  | { readonly do: "ask" };

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("wait" as const), hours: fc.integer({ min: 1, max: 200 }) }),
    fc.record({
      ...{ do: fc.constant("node" as const), id: fc.integer({ min: 1, max: 6 }) },
      perHour: fc.integer({ min: 0, max: 40 }).map((cents) => cents / 100),
    }),
    fc.record({
      do: fc.constant("end" as const),
      id: fc.integer({ min: 1, max: 6 }),
      isWritten: fc.boolean(),
    }),
    fc.record({ do: fc.constant("ask" as const) }),
  ),
  { maxLength: 60 },
);

/** A tenant with a budget, whose costs are summed up over all nodes each time. */
class Life {
  readonly fixture: SchedulerFixture;
  readonly waiting = new Set<string>();
  readonly #amount: number;
  readonly #nodes = new Map<number, { readonly since: number; readonly perHour: number }>();
  /** By month. */
  readonly #ended = new Map<string, number>();
  #written = 0;
  #month = monthAt(START, "UTC");
  #asked = 0;

  constructor(amount: number) {
    this.#amount = amount;
    this.fixture = started(budget({ amount }));
  }

  get month(): Month {
    this.#month = monthAt(this.fixture.now, "UTC", this.#month);
    return this.#month;
  }

  /** How much is left. Sums of fractions are not exact: a millionth more or less says nothing. */
  get left(): number {
    const running = [...this.#nodes.keys()].reduce((sum, id) => sum + this.#costOf(id), 0);
    return this.#amount - running - (this.#ended.get(this.month.name) ?? 0);
  }

  live(step: Step): void {
    const { fixture } = this;
    if (step.do === "wait") this.take(fixture.wait(step.hours * HOUR_MS));
    else if (step.do === "ask") {
      this.waiting.add(`100-${++this.#asked}`);
      this.take(fixture.request(`100-${this.#asked}`, fields));
    } else if (step.do === "end") this.#end(step.id, step.isWritten);
    else if (!this.#nodes.has(step.id)) {
      this.#nodes.set(step.id, { since: fixture.now, perHour: step.perHour });
      this.take(fixture.node(`${step.id}`, priced(step.perHour, fixture.now), ["c"]));
    }
  }

  /** Of a record that is removed by hand (not `isWritten`) no ledger says anything. */
  #end(id: number, isWritten: boolean): void {
    if (!this.#nodes.has(id)) return;
    const { name: month } = this.month;
    const sum = (this.#ended.get(month) ?? 0) + this.#costOf(id);
    this.#nodes.delete(id);
    if (!isWritten) return this.take(this.fixture.gone("node", `${id}`));
    this.#ended.set(month, sum);
    const after = { month, nodes: ++this.#written, amounts: { EUR: sum }, unpriced: 0 };
    this.take(
      this.fixture.tell({ type: "node", id: `${id}` }, { type: "spent", tenant: "t1", month, after }),
    );
  }

  take(actions: readonly Action[]): void {
    for (const id of accepted(actions)) {
      expect(this.left).toBeGreaterThan(-1e-6);
      this.waiting.delete(id);
    }
  }

  #costOf(id: number): number {
    const { since, perHour } = this.#nodes.get(id)!;
    return (perHour * (this.fixture.now - Math.max(since, this.month.from))) / HOUR_MS;
  }
}

test("whatever happens, a request of the tenant begins if and only if less than the budget is spent", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 60 }), (all: readonly Step[], amount) => {
      const life = new Life(amount);
      for (const step of all) {
        life.live(step);
        if (life.left < -1e-6)
          for (const id of life.waiting) expect(life.fixture.code(id)).toBe("budget.used");
      }
      // What was removed by hand counts until no ledger can come any more.
      life.take(life.fixture.wait(10_000));
      if (life.left > 1e-6) expect([...life.waiting]).toEqual([]);
      for (let id = 1; id <= 6; id++) life.live({ do: "end", id, isWritten: true });
      life.live({ do: "wait", hours: 32 * 24 });
      expect([...life.waiting]).toEqual([]);
    }),
    { numRuns: 100 },
  );
});
