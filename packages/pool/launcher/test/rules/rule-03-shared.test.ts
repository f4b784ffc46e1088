import type { AppliedWrite } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { fakeProvider, type Json, launcherConfig, World } from "./world.ts";

/** Small nodes take 4 cores and 8192 MiB. */
const [CORES, RAM] = [4, 8_192];
const SLOW = {
  latency: {
    create: { minMs: 200, maxMs: 2_000 },
    boot: { minMs: 100, maxMs: 500 },
    delete: { minMs: 100, maxMs: 500 },
    read: { minMs: 0, maxMs: 0 },
  },
};
/** A node that is nobody's keeps the name of its last tenant, and counts for none. */
const ofTenant = (node: Json) => node.tenant_name === "t1" && node.allocated_to !== null;

/** How many records that `counts` stood at once, at most, after any write. */
function mostOf(log: readonly AppliedWrite[], counts: (node: Json) => boolean): number {
  const standing = new Set<string>();
  let most = 0;
  for (const { ops, results } of log) {
    for (const [at, op] of ops.entries()) {
      const result = results[at];
      const path = result?.op === "create" ? result.path : op.path;
      if (op.op === "check" || !/^\/nodepool\/nodes\/\d{10}$/.test(path)) continue;
      if (op.op === "delete" || op.data === undefined) standing.delete(path);
      else if (counts(JSON.parse(Buffer.from(op.data).toString()) as Json)) standing.add(path);
      else standing.delete(path);
    }
    most = Math.max(most, standing.size);
  }
  return most;
}

const LIMITS = {
  "a pool's servers": {
    config: launcherConfig([fakeProvider("cloud", {}, { "max-servers": 3 })]),
    counts: () => true,
    ledger: "/nodeyard/limits/cloud/main",
  },
  "a tenant's instances": {
    config: launcherConfig([fakeProvider()], { tenantLimits: new Map([["t1", { instances: 3 }]]) }),
    counts: ofTenant,
    ledger: "/nodeyard/limits/@tenant/t1",
  },
  "a tenant's cores": {
    config: launcherConfig([fakeProvider()], { tenantLimits: new Map([["t1", { cores: 3 * CORES + 3 }]]) }),
    counts: ofTenant,
    ledger: "/nodeyard/limits/@tenant/t1",
  },
  "a pool's cores": {
    config: launcherConfig([fakeProvider("cloud", {}, { "max-cores": 3 * CORES })]),
    counts: () => true,
    ledger: "/nodeyard/limits/cloud/main",
  },
  "a pool's RAM": {
    config: launcherConfig([fakeProvider("cloud", {}, { "max-ram": 4 * RAM - 1 })]),
    counts: () => true,
    ledger: "/nodeyard/limits/cloud/main",
  },
  "the cloud's quota": {
    config: launcherConfig([fakeProvider()]),
    knobs: { quota: { ram: 3 * RAM } },
    counts: () => true,
    ledger: "/nodeyard/limits/@provider/cloud",
  },
};

test.each(Object.entries(LIMITS))(
  "rule 3: %s, over two launchers that lose replies and a session",
  async (_, given) => {
    const { config, counts, ledger } = given;
    const world = new World({ ...SLOW, ...("knobs" in given ? given.knobs : {}) });
    await world.start("launcher-a", config);
    const { tree } = await world.start("launcher-b", config);
    let writes = 0;
    world.fault = ({ kind }) =>
      kind === "write" && ++writes % 9 === 0 ? (writes % 2 === 0 ? "lose-reply" : "lose-request") : undefined;
    const open = new Set<string>();
    for (let at = 0; at < 10; at++) open.add(await world.ask({ tenant_name: "t1" }));
    await world.run(700);
    tree.expire();
    while (open.size > 0) {
      const served = await world.until(
        "one is served",
        () => [...open].find((id) => world.request(id)?.state === "fulfilled"),
        300_000,
      );
      open.delete(served);
      await world.use(served);
    }
    world.fault = () => undefined;
    await world.until("all is gone", () => world.nodes().length === 0, 300_000);
    // As many as fit, and never one more: what is launching counts from its record on.
    expect(mostOf(world.cluster.log, counts)).toBe(3);
    await world.until("the ledger agrees", () => world.json(ledger)?.instances === 0, 300_000);
    expect(world.json(ledger)).toMatchObject({ instances: 0, cores: 0, ram: 0 });
  },
);

test("rule 3: an idle node that keeps the name of its last tenant takes nothing of that tenant's limit", async () => {
  const world = new World();
  const given = { type: ["large"], tenant_name: "t1", resources: { instances: 1, cores: CORES, ram: RAM } };
  await world.makeNode({ state: "ready", provider: "cloud", pool: "main", ...given });
  const tenantLimits = new Map([["t1", { instances: 1 }]]);
  await world.start("launcher-a", launcherConfig([fakeProvider()], { tenantLimits }));
  await world.fulfilled(await world.ask({ tenant_name: "t1" }), 10_000);
});
