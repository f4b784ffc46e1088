import { describe, expect, it } from "vitest";
import { type ByLevel, CONNECTION, describeKeys, fileOf, type Values, words } from "./cloud-keys.ts";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider, in one line per mapping, so that one of them can be replaced. */
const WHOLE = {
  provider:
    "location: l, resource-group: r, resource-group-location: l, auth-path: /a, rate: '1.5', network: n, zuul-public-key: z",
  diskimages: "name: i, key: k, tags: {a: b}",
  "cloud-images": "name: c, username: u, image-reference: {publisher: p, offer: o, sku: '1', version: v}",
  pool: "name: p, max-servers: 2, ipv6: true",
  label: "name: a, cloud-image: c, hardware-profile: {vm-size: s}, volume-size: 40",
};

const file = fileOf("azure", WHOLE);

/** Values of each type of Nodepool's validator, and values that it refuses. */
const TYPES: Readonly<Record<string, Values>> = {
  number: [words("5 0.5 '1.5'"), words("x [1]")],
  network: [
    ["x", "{}", "{resource-group: g, network: n, subnet: s}"],
    ["5", "{net: n}", "{network: 5}", "[x]", "null"],
  ],
  profile: [["{vm-size: s}"], ["{}", "{vm-size: 5}", "{vm-size: s, x: y}", "s", "null"]],
  reference: [
    ["{sku: s, publisher: p, offer: o, version: v}"],
    ["{sku: s, publisher: p, offer: o}", "{sku: 1, publisher: p, offer: o, version: v}", "{}", "x", "null"],
  ],
  filter: [
    ["{}", "{name: n, location: l, tags: {a: b}}"],
    ["{id: x}", "{tags: [a]}", "x", "null"],
  ],
  gallery: [
    ["{gallery-name: g, name: n}", "{gallery-name: g, name: n, version: v}"],
    ["{name: n}", "{gallery-name: g}", "{gallery-name: g, name: n, version: 1}", "x", "null"],
  ],
};
const ADDRESSES = words("ipv4 ipv6 public-ipv4 public-ipv6 use-internal-ip host-key-checking");
/** All keys of Nodepool's validator, by where they are and their type; those that it wants are in NEEDED, too. */
const KEYS: ByLevel<ByLevel<readonly string[]>> = {
  provider: {
    text: words(
      "location resource-group resource-group-location auth-path subnet-id zuul-public-key post-upload-hook",
    ),
    integer: words("boot-timeout launch-timeout launch-retries max-concurrency priority"),
    number: ["rate"],
    flag: ADDRESSES,
    network: ["network"],
  },
  "cloud-images": {
    text: [...CONNECTION, ...words("name username password key image-id")],
    integer: ["connection-port"],
    flag: ["generate-password"],
    reference: ["image-reference"],
    filter: ["image-filter"],
    gallery: words("community-gallery-image shared-gallery-image"),
  },
  diskimages: {
    text: [...CONNECTION, ...words("name username key")],
    integer: ["connection-port"],
    flag: ["pause"],
    mapping: ["tags"],
  },
  pool: {
    text: ["name"],
    integer: words("max-servers priority"),
    flag: ADDRESSES,
    mapping: ["node-attributes"],
  },
  label: {
    text: words("name cloud-image diskimage user-data custom-data"),
    integer: ["volume-size"],
    mapping: words("tags dynamic-tags"),
    profile: ["hardware-profile"],
  },
};
/** What each mapping must have, and nothing else. */
const NEEDED: ByLevel<ByLevel<string>> = {
  provider: { location: "l", "resource-group": "r", "resource-group-location": "l", "auth-path": "/a" },
  "cloud-images": { name: "c", username: "u", "image-id": "x" },
  diskimages: { name: "i" },
  pool: { name: "p" },
  label: { name: "a", "hardware-profile": "{vm-size: s}" },
};

describeKeys("azure", { file, keys: KEYS, types: TYPES, needed: NEEDED, images: /^image-|gallery/ });

describe("azure, as config-validate judges it", () => {
  it("a whole one is valid and loads", () => {
    expect(verdict(file())).toEqual([]);
    expect(load(file()).errors).toEqual([]);
  });

  it.each([
    [
      { label: "name: a, cloud-image: c, hardware-profile: {vm-size: s}, use-spot: true" },
      "use-spot: is a key of Nodeyard",
    ],
    [
      { pool: "name: p, max-servers: 1, availability-zones: ['1']" },
      "availability-zones: is a key of Nodeyard",
    ],
    [{ label: "name: a, hardware-profile: {vm-size: s}" }, "has no image"],
    [
      { provider: "location: l, resource-group: r, resource-group-location: l, auth-path: /a" },
      "has no network",
    ],
  ])("accepts %j with a warning", (changes, message) => {
    expect(verdict(file(changes))).toEqual([expect.stringMatching(new RegExp(`^warning .*${message}`))]);
    expect(exitCode(file(changes))).toBe(0);
  });

  // What only the old loader refuses.
  it.each([
    [{ pool: "name: p" }, "max-servers: is missing"],
    [
      { label: "name: a, cloud-image: other, hardware-profile: {vm-size: s}" },
      "not in this provider's cloud-images",
    ],
    [{ diskimages: "name: other" }, "not among the top-level diskimages"],
    [{ label: "name: nope, cloud-image: c, hardware-profile: {vm-size: s}" }, "names label nope"],
  ])("%j does not load", (changes, message) => {
    expect(load(file(changes)).errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });

  it.each([
    [{}, {}, [true, false, true, false]],
    [{ ipv6: true }, {}, [true, true, true, false]],
    [{ "public-ipv4": false }, { ipv6: true }, [false, true, false, false]],
    [{ "public-ipv4": false }, {}, [true, false, false, false]],
    [{ "public-ipv6": true }, { "public-ipv4": false, ipv4: true }, [true, true, false, true]],
  ])(
    "addresses of provider %j and pool %j are %j",
    (provider, pool, [ipv4, ipv6, publicIpv4, publicIpv6]) => {
      const keys = (of: object) => Object.entries(of).map(([key, value]) => `, ${key}: ${value}`);
      const { config } = load(
        file({
          provider: `${WHOLE.provider}${keys(provider).join("")}`,
          pool: `name: p, max-servers: 1${keys(pool).join("")}`,
        }),
      );
      expect(config?.providers[0]?.pools[0]?.own).toEqual({ ipv4, ipv6, publicIpv4, publicIpv6 });
    },
  );
});
