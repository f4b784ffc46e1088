import { machineMetadata } from "@nodeyard/driver";
import type { NodeReport, Rspec, SliverReport } from "@nodeyard/sliver-protocol";
import { expect, test } from "vitest";
import { sliverName } from "../src/names.ts";
import { shownMachine } from "../src/shown.ts";

const MIB = 1_048_576;
const owner = { installation: "5c9b4a3e-0000-4000-8000-000000000001", provider: "lab" };
const tag = { ...owner, pool: "main", nodeId: "0000000042" };
const name = sliverName(tag);

function sliver(more: Partial<Omit<SliverReport, "rspec" | "effective">>, rspec: object, effective = rspec) {
  const zeros = { cpuGuarantee: 0, cpuCap: 0, memoryCap: 0, memoryGuarantee: 0, disk: 0, cpuCores: 0 };
  const one = { name, generation: 1, incarnation: 1, phase: "running", unenforced: [], loans: [], tags: {} };
  const rspecs = { rspec: { ...zeros, ...rspec } as Rspec, effective: { ...zeros, ...effective } as Rspec };
  return { ...one, ...rspecs, ...more } as SliverReport;
}

function reportOf(...slivers: readonly SliverReport[]): NodeReport {
  return {
    ...{
      node: "rack-7",
      appliedEpoch: 1,
      appliedVersion: 1,
      safeMode: false,
      clockSuspect: false,
      keySet: 1,
    },
    ...{
      capacity: { cpu: 4_000, memory: 4 * 1_048_576, slivers: 30 },
      refused: [],
      unlisted: [],
      sequence: 1,
    },
    slivers,
  };
}

test("guarantee, cap, loan and use of a sliver have the names and units of its machine's capacity", () => {
  const busy = sliver(
    {
      tags: machineMetadata(tag),
      usage: { cpu: 9, cpuNow: 1_400, memory: 380 * MIB, disk: 1.5 * MIB },
      volumes: [{ name: "ccache", path: "/cache/ccache", size: 1_024 * 1_000, commit: "never" }],
    },
    { cpuGuarantee: 1_000, cpuCap: 2_000, memoryGuarantee: 524_288, disk: 1_024 * 1_024 },
    { cpuGuarantee: 1_000, cpuCap: 2_500, memoryGuarantee: 524_288, disk: 1_024 * 1_024 },
  );
  const lender = sliver({ name: "ada" }, { cpuCap: 900 }, { cpuCap: 400 });
  const machine = shownMachine(reportOf(busy, lender), { owner });
  expect(machine).toMatchObject({
    capacity: { instances: 30, millicores: 4_000, ram: 4_096 },
    guaranteed: { instances: 2, millicores: 1_000, ram: 512, "disk-mib": 2_024 },
    uses: { millicores: 1_400, ram: 380, "disk-mib": 2 },
  });
  expect(machine.slivers).toMatchObject([
    {
      ...{ node: "0000000042", held: false, guarantees: { millicores: 1_000, ram: 512, "disk-mib": 2_024 } },
      uses: { millicores: 1_400, ram: 380, "disk-mib": 2 },
    },
    { name: "ada", node: null },
  ]);
  // Its memory has no cap of its own, and nobody has measured what the lender uses.
  expect(machine.slivers.map(({ caps }) => caps)).toEqual([
    { millicores: 2_500, "disk-mib": 2_024 },
    { millicores: 400 },
  ]);
  expect(machine.slivers.map(({ borrowed }) => borrowed)).toEqual([
    { millicores: 500 },
    { millicores: -500 },
  ]);
  expect(machine.slivers[1]!.uses).toEqual({});
});

test("the free part of a machine lends, and counts for nothing", () => {
  const free = sliver(
    { name: "free" },
    { cpuGuarantee: 500, cpuCap: 900 },
    { cpuGuarantee: 500, cpuCap: 10 },
  );
  expect(shownMachine(reportOf(free), { owner })).toMatchObject({
    guaranteed: {},
    slivers: [{ use: "free", guarantees: {}, caps: { millicores: 10 }, borrowed: { millicores: -890 } }],
  });
});

test("who left a cache, and who ended after kills for memory, are nodes only where they were the owner's", () => {
  const cache = { id: "0a1b", name: "ccache", key: [], bytes: 1, began: 1, committed: 2, used: 3, hits: 0 };
  const report = {
    ...reportOf(),
    caches: [name, "n0000000042_0123456789abcdef", "ada"].map((by) => ({
      ...cache,
      by,
      lost: 0,
      pinned: false,
    })),
    killed: ["old", "ada", "n0000000042_0123456789abcdef", name, "b", "c"].map((killed) => ({
      ...{ name: killed, generation: 1, memoryKills: 2, memoryCap: 65_536 },
    })),
  };
  const text = "has ended; its memory (64 MiB) was full: the kernel killed 2 processes";
  const ours = shownMachine(report, { owner });
  expect(ours.caches.map(({ node }) => node)).toEqual(["0000000042", null, null]);
  expect(ours.remarks).toEqual([
    `sliver ada ${text}`,
    `sliver n0000000042_0123456789abcdef ${text}`,
    `node 0000000042 ${text}`,
    `sliver b ${text}`,
    `sliver c ${text}`,
  ]);
  expect(shownMachine(report, { owner: { ...owner, provider: "east" } }).caches[0]!.node).toBe(null);
  // The operator of the machine is told of all.
  expect(shownMachine(report).caches.map(({ node }) => node)).toEqual(["0000000042", "0000000042", null]);
});

test("a sliver of a slot is a node for the machine's operator alone; spares wait beside", () => {
  const slot = sliver({ name: "n42", held: true, tags: { node: "0000000042" } }, {});
  const report = { ...reportOf(slot), spares: [{ phase: "running" as const, nesting: true }] };
  expect(shownMachine(report)).toMatchObject({
    slivers: [
      { node: "0000000042", held: true, settled: null, remarks: [expect.stringContaining("suspended")] },
    ],
    spares: [{ phase: "running", image: null, nesting: true }],
  });
  expect(shownMachine(report, { owner }).slivers[0]!.node).toBe(null);
});
