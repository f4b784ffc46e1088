import { expect, test } from "vitest";
import type { AzureSettings } from "../../../../testing/azure/index.ts";
import { assertServed, type CallKind, type CrowdPlan, crowd } from "../../../../testing/crowd/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { AzureRig, compile } from "./rig.ts";

const requests = 200;
const TIMES = { bootMs: 30_000, deletionMs: 20_000, lagMs: 1_500, pageSize: 250 };

function crowdAt(settings: Partial<AzureSettings>, rate: number, plan: Omit<CrowdPlan, "requests">) {
  const rig = new AzureRig({ ...TIMES, ...settings });
  const { azure } = rig;
  const { world } = azure;
  const config = compile({ small: {} }, { provider: { rate, "launch-timeout": 900 } });
  return crowd(
    rig,
    config,
    {
      machines: () =>
        world
          .all("virtualMachines")
          .map(({ name, madeAt, tags }) => ({ id: `${name} ${madeAt}`, node: tags?.nodepool_node_id })),
      left: () => world.in("nodes").flatMap(({ id, type }) => (/subnets/.test(type) ? [] : [id])),
      calls: () =>
        azure.calls.map(({ call, status, path }): CallKind => {
          if (status === 429) return "throttled";
          if (status === 409) return "full";
          if (call === "PUT virtualMachines") return "launch";
          return /virtualMachines\/./i.test(path) ? "removal" : "list";
        }),
      loseAnswers: () =>
        azure.set({ faults: [{ call: "PUT virtualMachines", how: "drop-answer", times: 5 }] }),
    },
    { requests, ...plan },
  );
}

test("200 requests, quota, throttling, a zone without room, lost answers, killed launchers", {
  timeout: patient(240_000),
}, async () => {
  const most = 60;
  const figures = await crowdAt(
    {
      buckets: { writes: [10, 1], deletes: [10, 1] },
      ...{ capacity: [{ zone: "1", most: 0 }], quotas: { standardDSv5Family: 2 * most } },
    },
    2,
    { launchers: 3, kills: [0.3, 0.6] },
  );
  assertServed(figures, { requests, most });
});

test("200 requests that nothing disturbs take one call each way, and a third of one for lists", {
  timeout: patient(240_000),
}, async () => {
  const quotas = { standardDSv5Family: 2 * requests, cores: 2 * requests };
  const figures = await crowdAt({ quotas }, 10, { launchers: 1, kills: [] });
  assertServed(figures, { requests, most: requests });
  expect(figures.each.launch + figures.each.list).toBeLessThanOrEqual(1.3);
});
