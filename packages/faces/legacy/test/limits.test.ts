import { limitGauges } from "@nodeyard/metrics";
import { describe, expect, test } from "vitest";
import { gaugeSamples } from "../src/index.ts";

describe("limits of a configuration", () => {
  test("pools of a provider add up; an infinite limit is not reported", () => {
    const gauges = limitGauges({
      maxServers: new Map([
        ["cloud", [3, 4]],
        ["closed", [0]],
        ["free", [3, Number.POSITIVE_INFINITY]],
      ]),
      tenants: new Map([["a.b:c", { cores: 8, instances: Number.POSITIVE_INFINITY, "volume-gb": 100 }]]),
    });
    expect(gaugeSamples(gauges, "host")).toEqual([
      { key: "nodepool.provider.cloud.max_servers", type: "g", value: 7 },
      { key: "nodepool.provider.closed.max_servers", type: "g", value: 0 },
      { key: "nodepool.tenant_limits.a_b_c.cores", type: "g", value: 8 },
      { key: "nodepool.tenant_limits.a_b_c.volume-gb", type: "g", value: 100 },
    ]);
  });
});
