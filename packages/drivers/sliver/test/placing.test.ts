import type { NodeReport } from "@nodeyard/sliver-protocol";
import { expect, test } from "vitest";
import { capacityOf, freeShare, guaranteesOf } from "../src/amounts.ts";
import { Placing } from "../src/placing.ts";

const CORE = { cpuGuarantee: 1000 };
const NEED = guaranteesOf({ rspec: CORE });
/** What machine `one` says that has these slivers. */
const report = (...names: readonly string[]) =>
  ({ node: "one", slivers: names.map((name) => ({ name, rspec: CORE })) }) as unknown as NodeReport;
const cores = (placing: Placing, ...[reported, look]: Parameters<Placing["used"]>) =>
  placing.used(reported, look).millicores ?? 0;

test("what is on its way into a document counts once, from its choice to the machine's own word", () => {
  const placing = new Placing();
  const look = placing.begin();
  const placed = placing.add("one", "a", NEED);
  expect(cores(placing, report(), look)).toBe(1000);
  // The machine took the document, and its answer is still on the way.
  expect(cores(placing, report("a"), look)).toBe(1000);
  expect(cores(placing, { ...report(), node: "two" }, look)).toBe(0);
  placed();
  expect(cores(placing, report("a"), placing.begin())).toBe(1000);
});

test("a report that is older than a placement is read as if it contained the placement", () => {
  const placing = new Placing();
  const placed = placing.add("one", "a", NEED);
  const asked = placing.begin();
  const stale = report();
  placed();
  expect(cores(placing, stale, asked)).toBe(1000);
  // Who asks after that is told; what has ended again meanwhile takes nothing.
  const later = placing.begin();
  expect(cores(placing, report(), later)).toBe(0);
  // Also when another one's choice is made first.
  placing.end(later);
  expect(cores(placing, stale, asked)).toBe(1000);
  placing.end(asked);
  expect(cores(placing, report(), asked)).toBe(0);
});

test("a sliver goes only to a machine that has its caches", () => {
  const share = (capacity: Readonly<Record<string, number>>) =>
    freeShare(
      capacityOf({ capacity } as unknown as NodeReport),
      {},
      guaranteesOf({ rspec: {}, caches: ["ccache", "mirror"] }),
    );
  expect(share({ slivers: 8, "cache.ccache": 8, "cache.mirror": 8 })).toBe(0.875);
  expect(share({ slivers: 8, "cache.ccache": 8 })).toBeUndefined();
});
