import { describe, expect, it } from "vitest";
import { type ByLevel, CONNECTION, describeKeys, fileOf, words } from "./cloud-keys.ts";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider of Nodepool's keys, in one line per mapping, so that one of them can be replaced. */
const WHOLE = {
  provider: "vpc: v, region: us-south, launch-retries: 2, quota: {instances: 1}",
  diskimages: "name: i, operating-system: debian-12-amd64",
  "cloud-images":
    "name: c, username: u, keys: [k], image-filter: {operating-system: {vendor: v}, status: available}",
  pool: "name: p, zone: us-south-1, subnet: s, max-servers: 2, public-ipv4: true",
  label: "name: a, profile: bx2-2x8, cloud-image: c, user-data: x",
};

const file = fileOf("ibmvpc", WHOLE);

/** All keys of Nodepool's validator, by where they are and their type. */
const KEYS: ByLevel<ByLevel<readonly string[]>> = {
  provider: {
    text: words("vpc region zone subnet credentials-file post-upload-hook"),
    integer: words("boot-timeout launch-timeout launch-retries max-concurrency priority"),
    flag: words("public-ipv4 use-internal-ip host-key-checking"),
    number: ["rate"],
    storage: ["object-storage"],
    quota: ["quota"],
  },
  diskimages: {
    text: [...CONNECTION, "name", "operating-system"],
    integer: ["connection-port"],
    flag: ["pause"],
  },
  "cloud-images": {
    text: [...CONNECTION, ...words("name username image-id image-href image-name")],
    integer: ["connection-port"],
    texts: ["keys"],
    filter: ["image-filter"],
  },
  pool: {
    text: words("zone subnet"),
    name: ["name"],
    integer: words("max-servers priority"),
    flag: words("public-ipv4 use-internal-ip host-key-checking"),
    mapping: ["node-attributes"],
  },
  label: { text: words("name profile cloud-image diskimage user-data") },
};
const NEEDED: ByLevel<ByLevel<string>> = {
  provider: { vpc: "v", region: "r" },
  diskimages: { name: "i", "operating-system": "o" },
  "cloud-images": { name: "c", username: "u", "image-id": "i" },
  pool: { name: "p" },
  label: { name: "a", profile: "x" },
};

describeKeys("ibmvpc", {
  ...{ file, keys: KEYS, needed: NEEDED, images: /^image-(id|href|name|filter)$/ },
  types: {
    name: [
      ["x", "a_b"],
      ["''", "_x", ...words("5 [x] null")],
    ],
    number: [words("0 1 1.5 '1.5'"), words("x [1] null")],
    texts: [["[]", "[x, y]"], words("x [1] {a:1} null")],
    storage: [
      ["{instance-name: i, endpoint: e, bucket-name: b}"],
      ["{instance-name: i, endpoint: e}", "{}", "{instance-name: i, endpoint: e, bucket-name: b, x: y}", "x"],
    ],
    quota: [
      ["{}", "{instances: 1, cores: 2, ram: 3}"],
      ["{instances: '1'}", "{volumes: 1}", "x"],
    ],
    filter: [
      [
        "{}",
        "{owner-type: provider, status: available}",
        "{operating-system: {architecture: a, display-name: d, family: f, href: h, name: n, vendor: v, version: '1'}}",
        "{operating-system: {dedicated-host-only: true}}",
      ],
      ["{operating-system: {version: 1}}", "{operating-system: {os: x}}", "{name: x}", "x"],
    ],
  },
});

describe("ibmvpc, as config-validate judges it", () => {
  it("a whole one is valid and loads", () => {
    expect(verdict(file()).filter((line) => !line.includes("cannot be uploaded without a bucket"))).toEqual(
      [],
    );
    expect(exitCode(file())).toBe(0);
    expect(load(file()).errors).toEqual([]);
    expect(load(file()).config?.providers[0]?.pools[0]).toMatchObject({
      availabilityZones: ["us-south-1"],
      limits: { instances: 2 },
      own: { zone: "us-south-1", subnets: ["s"], publicIpv4: true },
    });
  });

  it("pools take over what they do not say from their provider", () => {
    const changes = {
      provider:
        "vpc: v, region: us-south, zone: us-south-2, subnet: s, public-ipv4: true, use-internal-ip: true",
      pool: "name: p, max-servers: 2, public-ipv4: false",
    };
    expect(load(file(changes)).config?.providers[0]?.pools[0]).toMatchObject({
      ...{ availabilityZones: ["us-south-2"], useInternalIp: true },
      own: { zone: "us-south-2", subnets: ["s"], publicIpv4: false },
    });
  });

  it.each([
    [{ provider: `${WHOLE.provider}, image-format: vhd` }, "image-format: is accepted"],
    [{ provider: `${WHOLE.provider}, subnets: [a, b]` }, "subnets: is a key of Nodeyard"],
    [{ label: `${WHOLE.label}, use-spot: true` }, "use-spot: is a key of Nodeyard"],
    [{ label: "name: a, profile: bx2-2x8" }, "label a has no image"],
    [{}, "cannot be uploaded without a bucket"],
  ])("accepts %j with a warning", (changes, message) => {
    const lines = verdict(file(changes));
    expect(lines.filter((line) => !line.startsWith("warning"))).toEqual([]);
    expect(lines).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });

  // What only the loader refuses.
  it.each([
    [{ label: "name: a, cloud-image: other, profile: bx2-2x8" }, "not in this provider's cloud-images"],
    [{ pool: "name: p, zone: us-south-1, subnet: s" }, "max-servers: is missing"],
    [{ pool: "name: p, max-servers: 2, zone: us-south-1" }, "subnet: is missing"],
    [{ pool: "name: p.q, max-servers: 2, zone: us-south-1, subnet: s" }, "no resource group can have"],
    [{ diskimages: "name: other, operating-system: o" }, "not among the top-level diskimages"],
    [{ provider: "vpc: v, region: us-south-1" }, "region: is"],
    [{ label: "name: a, profile: BX2, cloud-image: c" }, "profile: is"],
  ])("%j does not load", (changes, message) => {
    expect(load(file(changes)).errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });
});
