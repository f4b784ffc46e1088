import { seededRandom } from "@nodeyard/runtime";
import type { PastEvent } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { CostBook, costKeys } from "../src/index.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const EUR = { per_hour: 2, currency: "EUR" };

/** A journal, written by hand; times are hours. */
class Journal {
  readonly book = new CostBook();

  ask(at: number, request: string, tenant: string | null, client = "zuul"): void {
    const asked = { labels: ["small"], client, ...(tenant !== null && { tenant }) };
    this.#write(at, "request.accepted", { asked }, request);
  }

  made(at: number, node: string, request: string, label = "small"): void {
    this.#write(at, "node.created", { request, provider: "cloud", label }, null, node);
  }

  ready(at: number, node: string, cost: object | null = EUR): void {
    this.#write(at, "node.ready", { cost }, null, node);
  }

  claimed(at: number, node: string, request: string): void {
    this.#write(at, "node.claimed", { request }, null, node);
  }

  checked(at: number, node: string): void {
    this.#write(at, "node.checked", {}, null, node);
  }

  gone(at: number, node: string): void {
    this.#write(at, "node.deleted", {}, null, node);
  }

  cost(by: (typeof costKeys)[number], since = 0, to = 100): Record<string, number | null> {
    return Object.fromEntries(
      this.book.rows(by, since * HOUR, to * HOUR).map(({ of, cost }) => [of ?? "", cost]),
    );
  }

  #write(
    at: number,
    event: string,
    facts: PastEvent["facts"],
    request: string | null = null,
    node: string | null = null,
  ) {
    this.book.event({ at: at * HOUR, event, request, node, facts });
  }
}

test("a request bears its nodes from the record to the end of the machine, failed launches too", () => {
  const journal = new Journal();
  journal.ask(1, "r1", "web", "ann@desk");
  journal.made(1, "n1", "r1");
  journal.gone(2, "n1");
  journal.made(2, "n2", "r1");
  journal.ready(2.5, "n2");
  journal.gone(4, "n2");
  expect(journal.cost("request")).toEqual({ r1: 6 });
  expect([journal.cost("client"), journal.cost("tenant")]).toEqual([{ "ann@desk": 6 }, { web: 6 }]);
  expect([journal.cost("label"), journal.cost("provider")]).toEqual([{ small: 6 }, { cloud: 6 }]);
  expect(journal.cost("tenant", 3)).toEqual({ web: 2 });
});

test("the time of a spare is borne by the users of its label on that day, by their hours; else by nobody", () => {
  const journal = new Journal();
  journal.made(0, "spare", "min-ready");
  journal.ready(0, "spare");
  journal.ask(1, "r1", "web");
  journal.made(1, "n1", "r1");
  journal.ready(1, "n1");
  journal.gone(4, "n1");
  journal.ask(12, "r2", "docs");
  journal.claimed(12, "spare", "r2");
  journal.gone(13, "spare");
  // Idle for 12 hours, of which three quarters are web's.
  expect(journal.cost("tenant")).toEqual({ web: 6 + 18, docs: 2 + 6 });
  const [web] = journal.book.rows("tenant", 0, DAY);
  expect(web).toEqual({ of: "web", currency: "EUR", hours: 12, shared_hours: 9, cost: 24 });
  // The next day nobody uses the label.
  journal.made(24, "late", "min-ready");
  journal.ready(24, "late");
  expect(journal.cost("tenant", 24, 26)).toEqual({ "": 4 });
});

test("a node that another launcher deleted ends with the newest event of it, and is counted", () => {
  const journal = new Journal();
  journal.ask(0, "r1", "web");
  for (const node of ["theirs", "ours", "there"]) {
    journal.made(0, node, "r1");
    journal.ready(1, node);
  }
  journal.gone(2, "ours");
  expect(journal.cost("tenant")).toEqual({ web: 404 });
  expect(journal.book.endGone(new Set(["there"]))).toBe(1);
  expect(journal.cost("tenant", 0, 10)).toEqual({ web: 2 + 4 + 20 });
});

test("a slot pays its part of the machine, which is paid once", () => {
  const journal = new Journal();
  journal.made(0, "machine", "backing", "big");
  journal.ready(0, "machine", { per_hour: 8, currency: "EUR" });
  journal.ask(0, "r1", "web");
  journal.made(0, "slot", "r1", "slot");
  journal.ready(0, "slot", { ...EUR, part_of: ["big"] });
  journal.gone(3, "slot");
  journal.gone(4, "machine");
  expect(journal.cost("tenant")).toEqual({ web: 6, "": 26 });
  expect(journal.cost("label")).toEqual({ slot: 6, big: 26 });
  expect(journal.cost("provider")).toEqual({ cloud: 32 });
});

test("whoever bears it, the sum is what the machines cost; what has no price has hours alone", () => {
  for (let seed = 0; seed < 30; seed++) {
    const random = seededRandom(seed);
    const pick = (n: number) => Math.floor(random.float() * n);
    const journal = new Journal();
    let hours = 0;
    for (let number = 0; number < 40; number++) {
      const [from, length] = [pick(60), 1 + pick(30)];
      const node = `n${number}`;
      const isSpare = pick(3) === 0;
      if (!isSpare || pick(2) === 0) journal.ask(from, `r${number}`, ["web", "docs", null][pick(3)]!);
      journal.made(from, node, isSpare ? "min-ready" : `r${number}`, ["small", "large"][pick(2)]!);
      journal.ready(from, node);
      if (isSpare) journal.claimed(from + length / 2, node, `r${number}`);
      journal.gone(from + length, node);
      hours += length;
    }
    for (const by of costKeys) {
      const rows = journal.book.rows(by, 0, 100 * HOUR);
      const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
      expect(sum((row) => row.cost!)).toBeCloseTo(hours * EUR.per_hour, 1);
      expect(sum((row) => row.hours)).toBeCloseTo(hours, 1);
    }
  }
  const journal = new Journal();
  journal.ask(0, "r1", null);
  journal.made(0, "n1", "r1");
  journal.ready(1, "n1", null);
  expect(journal.book.rows("tenant", 0, 2 * HOUR)).toEqual([
    { of: null, currency: null, hours: 2, shared_hours: 0, cost: null },
  ]);
});

test("a node that is used again costs each of its users their time, and what lies between them is shared", () => {
  const journal = new Journal();
  journal.ask(1, "r1", "web");
  journal.ask(4, "r2", "web");
  journal.made(1, "n1", "r1");
  journal.ready(1, "n1");
  journal.checked(2, "n1");
  journal.claimed(4, "n1", "r2");
  journal.gone(7, "n1");
  // Of the two hours between them the first bears a quarter, as it used one of four hours.
  expect(journal.cost("request")).toEqual({ r1: 3, r2: 9 });
});
