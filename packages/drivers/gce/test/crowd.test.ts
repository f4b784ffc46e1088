import { expect, test } from "vitest";
import { assertServed, type CallKind, type CrowdPlan, crowd } from "../../../../testing/crowd/index.ts";
import type { GceSettings } from "../../../../testing/gce/index.ts";
import { patient } from "../../../../testing/patience.ts";
import { compile, GceRig } from "./rig.ts";

const requests = 200;
const ZONES = ["us-central1-a", "us-central1-b", "us-central1-c"];
const TIMES = { startMs: 20_000, stopMs: 20_000, unseenMs: 2_000 };

async function crowdAt(settings: Partial<GceSettings>, rate: number, plan: Omit<CrowdPlan, "requests">) {
  const rig = new GceRig({ ...TIMES, ...settings });
  const { cloud } = rig;
  const { instances, disks } = cloud.compute;
  const pool = { "availability-zones": ZONES, "max-servers": 1_000 };
  const config = compile({ small: {} }, { pool, provider: { rate, "launch-timeout": 900 } });
  const figures = await crowd(
    rig,
    config,
    {
      machines: () => [...instances.values()].map(({ id, name }) => ({ id: String(id), node: name })),
      left: () => [...instances.keys(), ...disks.keys()],
      calls: () =>
        cloud.calls.map(({ call, status, path }): CallKind => {
          if (status === 403) return "throttled";
          // Google says so later, by the operation.
          if (call === "instances.insert" && path.zone === settings.capacity?.[0]?.zone) return "full";
          if (/^instances\.insert|^zoneOperations/.test(call)) return "launch";
          return /^instances\.(get|delete)/.test(call) ? "removal" : "list";
        }),
      loseAnswers: () => cloud.set({ faults: [{ call: "instances.insert", how: "drop-answer", times: 5 }] }),
    },
    { requests, ...plan },
  );
  await rig.stop();
  return figures;
}

test("200 requests, quota, throttling, a zone without room, lost answers, killed launchers", {
  timeout: patient(240_000),
}, async () => {
  const most = 60;
  const figures = await crowdAt(
    {
      perMinute: { write: 100, list: 150, read: 100, operations: 100 },
      capacity: [{ zone: ZONES[1]!, most: 0 }],
      quotas: { INSTANCES: most, CPUS: 4_000, CPUS_ALL_REGIONS: 4_000 },
    },
    2,
    { launchers: 3, kills: [0.3, 0.6] },
  );
  assertServed(figures, { requests, most });
});

test("200 requests that nothing disturbs take one call each way, and a third of one for lists", {
  timeout: patient(240_000),
}, async () => {
  const figures = await crowdAt({}, 10, { launchers: 1, kills: [] });
  assertServed(figures, { requests, most: requests });
  expect(figures.each.launch + figures.each.list).toBeLessThanOrEqual(1.3);
});
