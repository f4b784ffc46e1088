import { describe, expect, it } from "vitest";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider, in one line per mapping, so that one of them can be replaced. */
const WHOLE = {
  provider: "region-name: north, rate: 1.5, object-storage: {bucket-name: s}, max-resources: {L-1: 8}",
  diskimages: "name: i, username: u, import-method: ebs-direct, imds-support: v2.0, tags: {a: b}",
  "cloud-images": "name: c, username: u, connection-type: winrm, image-filters: [{Name: n, values: [v]}]",
  pool: "name: p, availability-zone: z, public-ipv4: false, max-cores: 4",
  label: "name: a, diskimage: i, key-name: k, instance-type: t, use-spot: true, imdsv2: null",
};

function file(changes: Partial<typeof WHOLE> = {}): string {
  const { provider, pool, label, ...lists } = { ...WHOLE, ...changes };
  const listed = Object.entries(lists).map(([key, entry]) => `, ${key}: [{${entry}}]`);
  return `labels: [{name: a}]
diskimages: [{name: i}]
providers:
  - {name: x, driver: aws, ${provider}${listed.join("")}, pools: [{${pool}, labels: [{${label}}]}]}`;
}

const label = (keys: string) => ({ label: `name: a, key-name: k, ${keys}` });

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
      label("diskimage: i, instance-type: t, fleet: {instance-types: [], allocation-strategy: diversified}"),
      "more than one of",
    ],
    [{ label: "name: a, diskimage: i, instance-type: t" }, "key-name: is missing"],
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
    expect(errors).toEqual([expect.stringContaining(message)]);
    expect(exitCode(file(changes))).toBe(1);
  });

  it.each([
    [{ pool: "name: p, use-internal-ip: true" }, "use-internal-ip: is accepted"],
    [{ pool: "name: p, subnet-ids: [s, t]" }, "subnet-ids: is a key of Nodeyard"],
    [label("cloud-image: c"), "has no size"],
    [label("instance-type: t"), "has no image"],
  ])("accepts %j with a warning", (changes, message) => {
    expect(verdict(file(changes))).toEqual([expect.stringMatching(new RegExp(`^warning .*${message}`))]);
    expect(exitCode(file(changes))).toBe(0);
  });

  // What only the old loader refuses.
  it.each([
    [
      { label: "name: nope, key-name: k, diskimage: i, instance-type: t" },
      "names label nope, which is not in the top-level labels",
    ],
    [label("instance-type: t, diskimage: other"), "names other"],
    [label("instance-type: t, cloud-image: other"), "not in this provider's cloud-images"],
    [{ diskimages: "name: i, import-method: image, imds-support: v2.0" }, "imds-support: is not possible"],
    [
      label("diskimage: i, instance-type: t, dedicated-host: true, use-spot: true"),
      "not possible together with use-spot",
    ],
    [
      { pool: "name: p", ...label("diskimage: i, instance-type: t, dedicated-host: true") },
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
