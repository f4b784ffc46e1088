import type { ConfigFinding } from "@nodeyard/driver";
import { describe, expect, it } from "vitest";
import { type FakeProviderConfig, fakeConfig, INSTANT } from "../../src/index.ts";

function load(raw: object): { config: FakeProviderConfig | undefined; reported: string[] } {
  const reported: string[] = [];
  const report = ({ severity, path, message }: ConfigFinding) =>
    reported.push(`${severity} ${path.join(".")}: ${message}`);
  const diskimages = new Map([["built", { username: "top", pythonPath: "/p", shellType: "sh" }]]);
  const context = { labels: new Set(["a"]), diskimages, report };
  return { config: fakeConfig.load({ name: "fake-1", ...raw }, context), reported };
}

const withLabel = (label: object, more: object = {}) =>
  load({ ...more, pools: [{ name: "main", labels: [{ name: "a", ...label }] }] });

describe("the fake driver's configuration", () => {
  it("has a default for everything", () => {
    const { config, reported } = load({});
    expect(reported).toEqual([]);
    expect(config).toEqual({
      name: "fake-1",
      driver: "fake",
      maxConcurrency: Number.POSITIVE_INFINITY,
      priority: 100,
      pools: [],
      launchTimeoutMs: 3_600_000,
      bootTimeoutMs: 60_000,
      launchAttempts: 3,
      own: { cloud: "fake-1", knobs: INSTANT, journal: null, loopback: false },
    });
  });

  it("compiles knobs", () => {
    const { config, reported } = load({
      fake: {
        seed: 7,
        quota: { instances: -1, cores: 8 },
        capacity: { az1: 2 },
        latency: { create: [20, 80], boot: 5 },
        errors: { create: 0.5 },
        faults: { "create-fails": 2, "never-active": -1 },
        "consistency-delay": 100,
        journal: "/x",
      },
    });
    expect(reported).toEqual([]);
    expect(config?.own.knobs).toMatchObject({
      seed: 7,
      quota: { cores: 8, ram: 1_000_000 },
      capacity: { az1: 2 },
      latency: {
        create: { minMs: 20, maxMs: 80 },
        boot: { minMs: 5, maxMs: 5 },
        delete: { minMs: 0, maxMs: 0 },
      },
      errors: { create: 0.5, delete: 0 },
      faults: { createFails: 2, neverActive: Number.POSITIVE_INFINITY },
      consistencyDelayMs: 100,
    });
    expect(config?.own.knobs.quota).not.toHaveProperty("instances");
    expect(config?.own.journal).toBe("/x");
  });

  it("compiles how nodes of a label are used again, and refuses a check that names no program", () => {
    const reuseOf = (reuse: object | undefined) => {
      const { config, reported } = withLabel(
        { "cloud-image": "c", ...(reuse && { reuse }) },
        { "cloud-images": [{ name: "c" }] },
      );
      return { reuse: config?.pools[0]?.labels.get("a")?.reuse, reported };
    };
    expect(reuseOf(undefined)).toEqual({ reuse: undefined, reported: [] });
    expect(reuseOf({ check: "/bin/true" })).toEqual({
      reuse: {
        ...{ check: ["/bin/true"], checkMs: 60_000, times: 10, forMs: 86_400_000, idleMs: 600_000 },
        forAll: false,
      },
      reported: [],
    });
    const more = { check: ["/bin/check", "-v"], "check-timeout": 5, times: 2, hours: 1, idle: 0, for: "all" };
    expect(reuseOf(more).reuse).toEqual({
      ...{ check: ["/bin/check", "-v"], checkMs: 5_000, times: 2, forMs: 3_600_000, idleMs: 0 },
      forAll: true,
    });
    for (const wrong of [{}, { check: [] }, { ...more, for: "some" }])
      expect(reuseOf(wrong).reported.length).toBeGreaterThan(0);
  });

  it("compiles a pool and a label of a cloud image", () => {
    const { config, reported } = load({
      "max-concurrency": 0,
      priority: 50,
      "launch-retries": 0,
      "cloud-images": [{ name: "c", username: "u", "connection-type": "winrm" }],
      pools: [
        {
          name: "main",
          "max-servers": 3,
          "max-cores": 9,
          "availability-zones": ["az1"],
          labels: [{ name: "a", "cloud-image": "c", "min-ram": 9000 }],
        },
      ],
    });
    expect(reported).toEqual([]);
    expect(config).toMatchObject({ maxConcurrency: 0, launchAttempts: 1 });
    const pool = config?.pools[0];
    expect(pool).toMatchObject({
      priority: 50,
      availabilityZones: ["az1"],
      limits: { instances: 3, cores: 9, ram: Number.POSITIVE_INFINITY },
    });
    expect(pool?.labels.get("a")).toEqual({
      name: "a",
      consoleLog: false,
      hostKeyChecking: true,
      connection: { username: "u", pythonPath: "auto", shellType: null, type: "winrm", port: 5986 },
      image: { kind: "cloud-image", name: "c" },
      own: { cores: 4, ram: 9000, imageProperties: {} },
    });
  });

  it("takes the connection of a diskimage from the top level and the provider's entry", () => {
    const images = {
      diskimages: [{ name: "built", "connection-port": 2222, meta: { SHOULD_FAIL: "true" } }],
    };
    const { config, reported } = withLabel({ diskimage: "built" }, images);
    expect(reported).toEqual([]);
    expect(config?.pools[0]?.labels.get("a")).toMatchObject({
      connection: { username: "top", pythonPath: "/p", shellType: "sh", type: "ssh", port: 2222 },
      own: { imageProperties: { SHOULD_FAIL: "true" } },
    });
  });

  it("reports references that lead nowhere", () => {
    expect(withLabel({ "cloud-image": "x" }).reported[0]).toMatch(
      /^error pools\.0\.labels\.0\.cloud-image: names x/,
    );
    expect(withLabel({ diskimage: "x" }).reported[0]).toMatch(
      /^error pools\.0\.labels\.0\.diskimage: names x/,
    );
    expect(withLabel({ diskimage: "built" }).reported[0]).toMatch(
      /^effect .*no upload of it will ever exist/,
    );
    expect(load({ diskimages: [{ name: "x" }] }).reported[0]).toMatch(
      /^error diskimages\.0\.name: names diskimage x/,
    );
    expect(load({ pools: [{ name: "main", labels: [{ name: "b" }] }] }).reported[0]).toMatch(
      /^error pools\.0\.labels\.0\.name: names label b/,
    );
  });
});
