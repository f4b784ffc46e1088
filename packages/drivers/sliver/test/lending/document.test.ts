import { type Loan, type NodeDocument, parseSliver, type SliverSpecInput } from "@nodeyard/sliver-protocol";
import { describe, expect, test } from "vitest";
import { lendingOfPlaces, type Places } from "../../../metastatic/src/places.ts";
import { FREE, setBusy, setIdle, turnOf, withLoans } from "../../src/lending/index.ts";

const CAP = 1000;
const TAGS = { installation: "i", backing: "b" };
const LENDING: Places = { places: 3, rspec: { cpuCap: CAP, cpuGuarantee: 200 } };

const spec = (name: string, more: Partial<SliverSpecInput> = {}) =>
  parseSliver({
    name,
    generation: Number(name.slice(1)),
    instantiation: "plc-instantiated",
    rspec: { ...LENDING.rspec },
    ...more,
  });
const idle = (name: string) => parseSliver(setIdle(spec(name)));
const loan = (to: string, amount: number, by = "policy"): Loan => ({
  to,
  generation: Number(to.slice(1)),
  resource: "cpuCap",
  amount,
  by,
});

function documentOf(
  slivers: readonly SliverSpecInput[],
  loans: NodeDocument["loans"] = {},
  unlisted: readonly string[] = [],
): NodeDocument {
  return {
    node: "node-1",
    epoch: 1,
    version: 1,
    safeMode: false,
    unlisted,
    slivers: slivers.map((one) => parseSliver(one)),
    ...(loans === undefined ? {} : { loans }),
  };
}

/** What an edit makes of a document, with the names of what it wrote anew. */
function edited(
  now: NodeDocument,
  edit: (all: Map<string, SliverSpecInput>) => void = () => undefined,
  places: Places = LENDING,
) {
  const slivers = new Map<string, SliverSpecInput>(now.slivers.map((one) => [one.name, one]));
  withLoans(edit, lendingOfPlaces(places), TAGS)(slivers, now);
  const before = new Map(now.slivers.map((one) => [one.name, one]));
  return {
    slivers,
    written: [...slivers].flatMap(([name, one]) => (one === before.get(name) ? [] : [name])),
  };
}

/** The document after it, as a manager would tell it. */
function after(now: NodeDocument, slivers: ReadonlyMap<string, SliverSpecInput>): NodeDocument {
  const lists = [...slivers.values()].map(
    ({ name, loans }) => [name, (loans ?? now.loans?.[name] ?? []) as readonly Loan[]] as const,
  );
  const without = [...slivers.values()].map(({ loans: _, ...one }) => one);
  return documentOf(without, Object.fromEntries(lists.filter(([, list]) => list.length > 0)));
}

describe("loans in a document", () => {
  test("free places are one record that is never made, and that goes with its last borrower", () => {
    const now = documentOf([spec("n1")]);
    const { slivers } = edited(now);
    expect(slivers.get(FREE)).toMatchObject({
      instantiation: "not-instantiated",
      rspec: { cpuCap: 2 * CAP },
      tags: TAGS,
      loans: [loan("n1", 2 * CAP - 10)],
    });
    const { slivers: next } = edited(after(now, slivers), (all) => all.delete("n1"));
    expect([...next.keys()]).toEqual([]);
  });

  test("what is as it should be is not touched, wherever it stands in the document", () => {
    const first = documentOf([spec("n1"), idle("n2")]);
    const second = after(first, edited(first).slivers);
    expect(edited(second).written).toEqual([]);
    const third = after(second, edited(second, (all) => all.set("n3", spec("n3"))).slivers);
    expect(third.slivers.map(({ name }) => name)).toEqual(["n1", "n2", "n3"]);
    expect(edited(third).written).toEqual([]);
  });

  test("a place is free when nothing of its sliver is left", () => {
    const now = documentOf([spec("n1"), spec("n2"), spec("n3")]);
    const { slivers } = edited(now, (all) => all.delete("n3"));
    expect([...slivers.keys()]).toEqual(["n1", "n2"]);
    expect(edited(documentOf([spec("n1"), spec("n2")], {}, ["n3"])).slivers.has(FREE)).toBe(false);
    expect(edited(documentOf([spec("n1"), spec("n2")])).slivers.has(FREE)).toBe(true);
  });

  test("a sliver that is woken lends nothing in the same document, and loans by its user come before those of the policy", () => {
    const own = loan("n1", 5, "n2");
    const now = documentOf([spec("n1"), idle("n2"), spec("n3")], {
      n2: [own, loan("n1", 400), loan("n3", 400)],
    });
    expect(edited(now).written).toEqual([]);
    const { slivers } = edited(now, (all) => all.set("n2", setBusy(all.get("n2")!)));
    expect(slivers.get("n2")?.loans).toEqual([own]);
    expect(turnOf(slivers.get("n2")!)).toBe(1);
  });

  test("two changes in one document: the last one counts", () => {
    const now = documentOf([spec("n1"), spec("n2"), spec("n3")]);
    const slivers = new Map<string, SliverSpecInput>(now.slivers.map((one) => [one.name, one]));
    withLoans((all) => all.set("n2", setIdle(all.get("n2")!)), lendingOfPlaces(LENDING), TAGS)(slivers, now);
    expect(slivers.get("n2")?.loans).toHaveLength(2);
    withLoans((all) => all.set("n2", setBusy(all.get("n2")!)), lendingOfPlaces(LENDING), TAGS)(slivers, now);
    expect([...slivers.values()].filter(({ loans }) => loans !== undefined)).toEqual([]);
  });

  test("switched off, loans of policy go and others stay; a manager that does not tell them is left alone", () => {
    const own = loan("n1", 5, "n2");
    const now = documentOf([spec("n1"), idle("n2"), spec("n3")], {
      n2: [own, loan("n1", 400), loan("n3", 400)],
    });
    const off = new Map<string, SliverSpecInput>(now.slivers.map((one) => [one.name, one]));
    withLoans(() => undefined, undefined, TAGS)(off, now);
    expect(off.get("n2")?.loans).toEqual([own]);
    const { loans: _, ...silent } = now;
    expect(edited(silent).written).toEqual([]);
  });

  test("a list that is longer than a document takes is cut", () => {
    const many = Array.from({ length: 1_200 }, (_, at) => spec(`n${at + 1}`));
    const { slivers } = edited(documentOf(many), undefined, { ...LENDING, places: 1_300 });
    expect(slivers.get(FREE)?.loans).toHaveLength(1_000);
    expect(() => parseSliver(slivers.get(FREE))).not.toThrow();
  });
});
