import { describe, expect, it } from "vitest";
import { type ByLevel, CONNECTION, describeKeys, fileOf, words } from "./cloud-keys.ts";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider of Nodepool's keys, in one line per mapping, so that one of them can be replaced. */
const WHOLE = {
  provider: "project: ci-project-1, region: us-central1, zone: us-central1-a, launch-retries: 2",
  "cloud-images": "name: c, image-project: debian-cloud, image-family: debian-12, username: u, key: k",
  pool: "name: p, max-servers: 4, use-internal-ip: true",
  label: "name: a, cloud-image: c, instance-type: e2-standard-4, volume-type: pd-ssd, volume-size: 30",
};

const file = fileOf("gce", WHOLE);

/** All keys of Nodepool's validator, by where they are and their type. */
const KEYS: ByLevel<ByLevel<readonly string[]>> = {
  provider: {
    text: words("project region zone"),
    integer: words("boot-timeout launch-timeout launch-retries rate-limit max-concurrency priority"),
  },
  "cloud-images": {
    text: [...CONNECTION, ...words("name username image-id image-project image-family key")],
    integer: ["connection-port"],
  },
  pool: {
    text: ["name"],
    integer: words("max-servers priority"),
    flag: ["use-internal-ip"],
    mapping: ["node-attributes"],
  },
  label: { text: words("name cloud-image instance-type volume-type"), integer: ["volume-size"] },
};
const NEEDED: ByLevel<ByLevel<string>> = {
  provider: { project: "p", region: "r", zone: "z" },
  "cloud-images": {},
  pool: { name: "p" },
  label: { name: "a", "cloud-image": "c", "instance-type": "t" },
};

describeKeys("gce", { file, keys: KEYS, needed: NEEDED });

describe("gce, as config-validate judges it", () => {
  it("a whole one is valid and loads", () => {
    expect(verdict(file())).toEqual([]);
    expect(exitCode(file(), { strict: true })).toBe(0);
    expect(load(file()).errors).toEqual([]);
    expect(load(file()).config?.providers[0]?.pools[0]).toMatchObject({
      availabilityZones: ["us-central1-a"],
      useInternalIp: true,
      own: { network: "default", publicIpv4: true },
    });
  });

  it.each([
    [{ pool: "name: p, host-key-checking: false" }, "host-key-checking: is accepted"],
    [{ provider: `${WHOLE.provider}, rate-limit: 1` }, "rate-limit: has no effect"],
    [{ provider: `${WHOLE.provider}, rate: 2` }, "rate: is read by Nodepool's loader, and refused"],
    [{ provider: `${WHOLE.provider}, bucket: ci-images`, diskimages: "name: i" }, "is a key of Nodeyard"],
    [{ label: `${WHOLE.label}, use-spot: true` }, "use-spot: is a key of Nodeyard"],
    [{ "cloud-images": "name: c" }, "which has neither image-id nor image-family"],
  ])("accepts %j with a warning", (changes, message) => {
    const lines = verdict(file(changes));
    expect(lines.filter((line) => !line.startsWith("warning"))).toEqual([]);
    expect(lines).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });

  it("an image without a source is none, so that a launch says so and asks Google for nothing", () => {
    const labels = load(file({ "cloud-images": "name: c" })).config?.providers[0]?.pools[0]?.labels;
    expect([...labels!.values()][0]?.own).toMatchObject({ sourceImage: null });
  });

  // What only the loader refuses.
  it.each([
    [{ label: "name: a, cloud-image: other, instance-type: t" }, "not in this provider's cloud-images"],
    [{ provider: "project: ci, region: us-central1, zone: us-east1-b" }, "which is not in us-central1"],
    [{ pool: "name: p, availability-zones: [us-central1-a, us-east1-b]" }, "has us-east1-b, which is not in"],
    [{ provider: "project: ci, region: us-central1, zone: a" }, "zone: is"],
    [{ label: "name: a, cloud-image: c, instance-type: t, max-run-duration: 5" }, "max-run-duration: is"],
  ])("%j does not load", (changes, message) => {
    expect(load(file(changes)).errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });
});
