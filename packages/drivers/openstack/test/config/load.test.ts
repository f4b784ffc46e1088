import type { ConfigFinding } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { openstackConfig } from "../../src/index.ts";

const TOP = { username: "zuul", pythonPath: "auto", shellType: null };

function load(fields: object) {
  const found: ConfigFinding[] = [];
  const config = openstackConfig.load(
    { name: "c", cloud: "mycloud", ...fields },
    {
      labels: new Set(["small", "large"]),
      diskimages: new Map([["noble", TOP]]),
      report: (finding) => void found.push(finding),
    },
  )!;
  return { config, found: found.map(({ severity, path, message }) => [severity, path.join("."), message]) };
}
const pool = (label: object, more: object = {}) => ({
  pools: [{ name: "main", labels: [{ name: "small", "flavor-name": "f", ...label }], ...more }],
});
const own = (fields: object) => load(fields).config.pools[0]!.labels.get("small")!.own;

test("every default is applied", () => {
  const { config, found } = load({ "cloud-images": [{ name: "i" }], ...pool({ "cloud-image": "i" }) });
  expect(found).toEqual([]);
  expect(config).toMatchObject({
    driver: "openstack",
    launchTimeoutMs: 3_600_000,
    bootTimeoutMs: 60_000,
    launchAttempts: 3,
    own: {
      cloud: "mycloud",
      region: null,
      intervalMs: null,
      imageUploadTimeoutMs: 3_600_000,
      portCleanup: true,
    },
  });
  const [main] = config.pools;
  expect(main).toMatchObject({
    limits: {
      instances: Number.POSITIVE_INFINITY,
      cores: Number.POSITIVE_INFINITY,
      "volume-gb": Number.POSITIVE_INFINITY,
    },
    availabilityZones: [],
    ignoreProviderQuota: false,
    own: { networks: [], securityGroups: [], autoFloatingIp: true },
  });
  expect(main?.labels.get("small")).toMatchObject({
    hostKeyChecking: true,
    consoleLog: false,
    connection: { username: null, pythonPath: "auto", type: "ssh", port: 22 },
    image: { kind: "cloud-image", name: "i" },
    own: { minRam: 0, volumeSize: null, configDrive: null, cloudImage: { name: "i" } },
  });
});

test("rate is seconds between calls here, quoted or not; attempts are at least one", () => {
  expect(load({ rate: "0.5" }).config.own.intervalMs).toBe(500);
  expect(load({ rate: 0 }).config.own.intervalMs).toBe(0);
  expect(load({ "launch-retries": 0 }).config.launchAttempts).toBe(1);
});

test("image-id goes before image-name, and that before the entry's name", () => {
  const image = (entry: object) =>
    own({ "cloud-images": [{ name: "i", ...entry }], ...pool({ "cloud-image": "i" }) }).cloudImage;
  expect(image({ "image-id": "1", "image-name": "n" })).toEqual({ id: "1" });
  expect(image({ "image-name": "n" })).toEqual({ name: "n" });
});

test("a label's networks replace the pool's, also with none; a volume has 50 GB", () => {
  const images = { "cloud-images": [{ name: "i", "config-drive": false }] };
  const label = { "cloud-image": "i", "boot-from-volume": true };
  expect(own({ ...images, ...pool(label, { networks: ["a"] }) })).toMatchObject({
    networks: ["a"],
    volumeSize: 50,
    configDrive: false,
  });
  expect(own({ ...images, ...pool({ ...label, networks: [] }, { networks: ["a"] }) }).networks).toEqual([]);
});

test("a reference to nothing is an error at its place; one that can never be served fails --strict", () => {
  expect(load(pool({ "cloud-image": "nope" })).found).toEqual([
    ["error", "pools.0.labels.0.cloud-image", expect.stringContaining("not in this provider's cloud-images")],
  ]);
  expect(load(pool({ diskimage: "nope" })).found.map(([, path]) => path)).toEqual([
    "pools.0.labels.0.diskimage",
  ]);
  expect(load(pool({ diskimage: "noble" })).found).toEqual([
    ["effect", "pools.0.labels.0.diskimage", expect.stringContaining("no upload of it will ever exist")],
  ]);
  expect(load({ diskimages: [{ name: "nope" }] }).found[0]?.slice(0, 2)).toEqual([
    "error",
    "diskimages.0.name",
  ]);
  expect(load(pool({ name: "huge", diskimage: "noble" })).found.map(([, path]) => path)).toContain(
    "pools.0.labels.0.name",
  );
});
