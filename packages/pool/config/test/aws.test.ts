import { describe, expect, it } from "vitest";
import { type ByLevel, CONNECTION, describeKeys, fileOf, type Values, words } from "./cloud-keys.ts";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider, in one line per mapping, so that one of them can be replaced. */
const WHOLE = {
  provider:
    "region-name: north, rate: 1.5, object-storage: {bucket-name: ci-images}, max-resources: {L-1: 8}",
  diskimages: "name: i, username: u, import-method: ebs-direct, imds-support: v2.0, tags: {a: b}",
  "cloud-images": "name: c, username: u, connection-type: winrm, image-filters: [{Name: n, values: [v]}]",
  pool: "name: p, availability-zone: z, public-ipv4: false, max-cores: 4",
  label: "name: a, diskimage: i, key-name: k, instance-type: t3.medium, use-spot: true, imdsv2: null",
};

const file = fileOf("aws", WHOLE);

const label = (keys: string) => ({ label: `name: a, key-name: k, ${keys}` });

/** Values of each type of Nodepool's validator, and values that it refuses; null is refused unless it is listed. */
const TYPES: Readonly<Record<string, Values>> = {
  number: [words("5 0.5 -1 0"), words("x '1.5' [1] null")],
  amounts: [
    ["{}", "{L-1: 5}"],
    ["{L-1: x}", "{L-1: 1.5}", "{L-1: null}", "[5]", "5", "null"],
  ],
  bucket: [["{bucket-name: b}"], ["{}", "{bucket-name: 5}", "{bucket-name: b, x: y}", "b", "null"]],
  profile: [
    ["{}", "{name: n}", "{arn: a}"],
    ["{name: n, arn: a}", "{name: 5}", "{arn: 5}", "{x: y}", "n", "null"],
  ],
  fleet: [
    ["prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"].map(
      (one) => `{instance-types: [t, 5], allocation-strategy: ${one}}`,
    ),
    [
      "{instance-types: t, allocation-strategy: diversified}",
      "{allocation-strategy: diversified}",
      "{instance-types: [t]}",
      "{instance-types: [t], allocation-strategy: null}",
      "{}",
      "[t]",
      "null",
    ],
  ],
  filters: [
    ["[{}]", "[{name: n, values: [v]}]", "[{Name: n, Values: [v]}]"],
    ["[{NAME: n}]", "[{name: 5}]", "[{values: v}]", "[{values: [5]}]", "{name: n}", "n", "null"],
  ],
  format: [words("ova vhd vhdx vmdk raw"), words("qcow2 RAW null 5")],
  method: [words("snapshot ebs-direct image"), words("upload null 5")],
  imds: [words("v2.0 null"), words("v1.0 2.0")],
  imdsv2: [words("required optional null"), words("always true")],
};
/** All keys of Nodepool's validator, by where they are and their type; those that it wants are in NEEDED, too. */
const KEYS: ByLevel<ByLevel<readonly string[]>> = {
  provider: {
    text: words("region-name profile-name post-upload-hook"),
    integer: words(
      "boot-timeout launch-timeout launch-retries image-import-timeout max-servers max-cores max-ram max-concurrency priority",
    ),
    number: ["rate"],
    amounts: ["max-resources"],
    bucket: ["object-storage"],
    format: ["image-format"],
  },
  "cloud-images": {
    text: [...CONNECTION, "name", "username", "image-id"],
    integer: ["connection-port"],
    filters: ["image-filters"],
  },
  diskimages: {
    text: [...CONNECTION, ...words("name username architecture volume-type")],
    integer: words("connection-port volume-size iops throughput"),
    flag: words("pause ena-support"),
    mapping: ["tags"],
    method: ["import-method"],
    imds: ["imds-support"],
  },
  pool: {
    text: words("name security-group-id subnet-id availability-zone"),
    integer: words("max-servers max-cores max-ram priority"),
    flag: words("public-ipv4 public-ipv6 public-ip-address host-key-checking"),
    amounts: ["max-resources"],
    mapping: ["node-attributes"],
  },
  label: {
    text: words("name cloud-image diskimage instance-type key-name volume-type userdata"),
    integer: words("volume-size iops throughput"),
    flag: words("ebs-optimized use-spot dedicated-host"),
    mapping: words("tags dynamic-tags"),
    profile: ["iam-instance-profile"],
    fleet: ["fleet"],
    imdsv2: ["imdsv2"],
  },
};
/** What each mapping must have, and nothing else. */
const NEEDED: ByLevel<ByLevel<string>> = {
  provider: { "region-name": "r" },
  "cloud-images": { name: "c", username: "u", "image-id": "x" },
  diskimages: { name: "i" },
  pool: { name: "p" },
  label: { name: "a", "key-name": "k" },
};

describeKeys("aws", { file, keys: KEYS, types: TYPES, needed: NEEDED, images: /^image-filters$/ });

// docs/contract/config.md: what the old validator refuses.
describe("aws, as config-validate judges it", () => {
  it("a whole one is valid and loads", () => {
    expect(verdict(file())).toEqual([]);
    expect(exitCode(file(), { strict: true })).toBe(0);
    expect(load(file()).errors).toEqual([]);
  });

  it.each([
    [{ provider: "rate: 1" }, "region-name: is missing"],
    [{ provider: "region-name: r, rate: '1.5'" }, "rate: is"],
    [{ provider: "region-name: r, image-format: qcow2" }, "image-format: is"],
    [{ provider: "region-name: r, public-ipv4: true" }, "public-ipv4: is not a key here"],
    [{ provider: "region-name: r, object-storage: {}" }, "bucket-name: is missing"],
    [{ "cloud-images": "name: c, username: u" }, "needs exactly one of image-id, image-filters"],
    [{ "cloud-images": "name: c, username: u, image-id: x, image-filters: []" }, "needs exactly one of"],
    [{ "cloud-images": "name: c, image-id: x" }, "has no username"],
    [{ "cloud-images": "name: c, username: u, image-filters: [{NAME: n}]" }, "NAME: is not a key"],
    [{ diskimages: "name: i, imds-support: v1.0" }, "imds-support: is"],
    [{ diskimages: "name: i, import-method: upload" }, "import-method: is"],
    [{ pool: "availability-zone: z" }, "name: is missing"],
    [label("diskimage: i, cloud-image: c"), "more than one of"],
    [
      label(
        "diskimage: i, instance-type: t3.medium, fleet: {instance-types: [], allocation-strategy: diversified}",
      ),
      "more than one of",
    ],
    [{ label: "name: a, diskimage: i, instance-type: t3.medium" }, "key-name: is missing"],
    [label("diskimage: i, host-key-checking: true"), "not a key here"],
    [label("fleet: {instance-types: [], allocation-strategy: best}"), "allocation-strategy: is"],
    [label("fleet: {instance-types: []}"), "allocation-strategy: is missing"],
    [
      label("fleet: {instance-types: [], allocation-strategy: diversified, instance-requirements: {}}"),
      "not a key here",
    ],
    [label("imdsv2: always"), "imdsv2: is"],
    [label("iam-instance-profile: {name: n, arn: a}"), "more than one of name, arn"],
  ])("refuses %j", (changes, message) => {
    const errors = verdict(file(changes)).filter((line) => line.startsWith("error"));
    expect(errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(1);
  });

  it.each([
    [{ pool: "name: p, use-internal-ip: true" }, "use-internal-ip: is accepted"],
    [{ pool: "name: p, subnet-ids: [subnet-1, subnet-2]" }, "subnet-ids: is a key of Nodeyard"],
    [label("cloud-image: c"), "has no size"],
    [label("instance-type: t3.medium"), "has no image"],
  ])("accepts %j with a warning", (changes, message) => {
    expect(verdict(file(changes))).toEqual([expect.stringMatching(new RegExp(`^warning .*${message}`))]);
    expect(exitCode(file(changes))).toBe(0);
  });

  // What only the old loader refuses.
  it.each([
    [
      { label: "name: nope, key-name: k, diskimage: i, instance-type: t3.medium" },
      "names label nope, which is not in the top-level labels",
    ],
    [label("instance-type: t3.medium, diskimage: other"), "names other"],
    [label("instance-type: t3.medium, cloud-image: other"), "not in this provider's cloud-images"],
    [{ diskimages: "name: i, import-method: image, imds-support: v2.0" }, "imds-support: is not possible"],
    [{ diskimages: "name: i, volume-type: io1" }, "iops: is missing, and the volume-type io1 needs it"],
    [
      label("diskimage: i, instance-type: t3.nano, volume-type: gp2, iops: 3000"),
      "iops: is for gp3, io1, io2",
    ],
    [
      label("diskimage: i, instance-type: t3.nano, volume-type: io2, iops: 300, throughput: 200"),
      "throughput: is for gp3",
    ],
    [
      label("diskimage: i, fleet: {instance-types: [t3.nano], allocation-strategy: diversified}"),
      "fleet.allocation-strategy: is diversified, which EC2 has not for on-demand machines",
    ],
    [
      label(
        "diskimage: i, use-spot: true, fleet: {instance-types: [t3.nano], allocation-strategy: prioritized}",
      ),
      "fleet.allocation-strategy: is prioritized, which EC2 has not for spot machines",
    ],
    [
      { provider: "region-name: eu-central-1", pool: "name: p, availability-zone: eu-west-1a" },
      "availability-zone: is eu-west-1a, which is not in eu-central-1",
    ],
    [{ "cloud-images": "name: c, username: u, image-filters: [{name: n}]" }, "needs a name and values"],
    [
      label("diskimage: i, instance-type: t3.medium, dedicated-host: true, use-spot: true"),
      "not possible together with use-spot",
    ],
    [
      { pool: "name: p", ...label("diskimage: i, instance-type: t3.medium, dedicated-host: true") },
      "needs the availability-zone",
    ],
  ])("%j does not load", (changes, message) => {
    expect(load(file(changes)).errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });

  it("the older name of public-ipv4 counts, and limits of the pool go over those of the provider", () => {
    const { config } = load(
      file({
        provider: "region-name: r, max-servers: 9, max-cores: 5, max-resources: {L-1: 8, L-2: 3}",
        pool: "name: p, public-ipv4: true, public-ip-address: false, max-cores: 4, max-resources: {L-2: 1}",
      }),
    );
    const pool = config?.providers[0]?.pools[0];
    expect(pool?.own).toMatchObject({ publicIpv4: false });
    expect(pool?.limits).toEqual({ instances: 9, cores: 4, ram: Infinity, "L-1": 8, "L-2": 1 });
  });
});
