import { type LabelConfig, launchedLabels } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { exitCode, load, verdict } from "./support.ts";

/** Of each driver: the mappings of a provider, two ways to buy its label, and how their types differ in the driver's own values. */
const CLOUDS = {
  openstack: {
    provider: "cloud: c, cloud-images: [{name: i}]",
    label: "cloud-image: i",
    offerings: ["flavor-name: small", "flavor-name: large, zone: north"],
    differ: (own: Record<string, unknown>) => own.flavorName,
    types: ["small", "large"],
  },
  aws: {
    provider: "region-name: r, cloud-images: [{name: i, username: u, image-id: ami-1}]",
    label: "cloud-image: i, key-name: k",
    offerings: ["instance-type: m5.large, use-spot: true", "instance-type: m5.large"],
    differ: (own: Record<string, unknown>) => own.spot,
    types: [true, false],
  },
  azure: {
    provider:
      "zuul-public-key: k, resource-group: g, resource-group-location: l, location: l, network: n, auth-path: /a, cloud-images: [{name: i, username: u, image-reference: {publisher: p, offer: o, sku: '1', version: v}}]",
    label: "cloud-image: i, hardware-profile: {vm-size: Standard_B1ls}",
    offerings: ["hardware-profile: {vm-size: Standard_B2ls}", "use-spot: true, spot-max-price: 0.01"],
    differ: (own: Record<string, unknown>) => own.size,
    types: ["Standard_B2ls", "Standard_B1ls"],
  },
  gce: {
    provider:
      "project: proj-1, region: europe-west1, zone: europe-west1-b, cloud-images: [{name: i, username: u, image-family: f}]",
    label: "cloud-image: i, instance-type: e2-small",
    offerings: ["use-spot: true, zone: europe-west1-b", "instance-type: e2-medium"],
    differ: (own: Record<string, unknown>) => own.instanceType,
    types: ["e2-small", "e2-medium"],
  },
  ibmvpc: {
    provider: "vpc: v, region: us-south, subnet: s, cloud-images: [{name: i, username: u, image-id: x}]",
    label: "cloud-image: i, profile: bx2-2x8",
    offerings: ["profile: bx2-4x16", "use-spot: true"],
    differ: (own: Record<string, unknown>) => own.profile,
    types: ["bx2-4x16", "bx2-2x8"],
  },
} as const;

const PRICED = ["weight: 2, max-price: 0.05", "weight: 1"];

function fileOf(driver: string, provider: string, label: string, offerings?: readonly string[]): string {
  const listed = offerings === undefined ? "" : `, offerings: [${offerings.map((one) => `{${one}}`).join()}]`;
  return `labels: [{name: a}]
providers:
  - {name: x, driver: ${driver}, ${provider}, pools: [{name: p, max-servers: 4, labels: [{name: a, ${label}${listed}}]}]}`;
}

const labelOf = (text: string): LabelConfig | undefined =>
  load(text).config?.providers[0]?.pools[0]?.labels.get("a");

test.each(Object.entries(CLOUDS))("a label of %s may list what it is bought as", (driver, cloud) => {
  const offerings = cloud.offerings.map((keys, index) => `${keys}, ${PRICED[index]}`);
  const text = fileOf(driver, cloud.provider, cloud.label, offerings);
  expect(load(text).errors).toEqual([]);
  expect(verdict(text).filter((line) => line.startsWith("error"))).toEqual([]);
  const label = labelOf(text)!;
  expect(label.offerings?.map(({ weight, maxPrice }) => [weight, maxPrice])).toEqual([
    [2, 0.05],
    [1, null],
  ]);
  const owns = label.offerings!.map((one) => one.label.own as Record<string, unknown>);
  expect(owns.map(cloud.differ)).toEqual(cloud.types);
  // What concerns the label alone is in each of them, and the label is as in the first.
  expect(new Set(label.offerings!.map((one) => JSON.stringify(one.label.image))).size).toBe(1);
  expect(label.own).toEqual(label.offerings![0]!.label.own);
  // What a driver prepares for launches, it prepares for each of them.
  const [pool] = load(text).config!.providers[0]!.pools;
  expect(launchedLabels(pool!).map(({ own }) => cloud.differ(own as Record<string, unknown>))).toEqual(
    cloud.types,
  );
});

const openstack = (label: string, offerings?: readonly string[]) =>
  fileOf("openstack", "cloud: c, cloud-images: [{name: i}]", label, offerings);

test("without offerings, or with an empty list, a label is what it was", () => {
  const plain = labelOf(openstack("cloud-image: i, flavor-name: small"));
  expect(labelOf(openstack("cloud-image: i, flavor-name: small", []))).toEqual(plain);
  expect(plain).not.toHaveProperty("offerings");
});

test.each([
  [["flavor-name: small, key-name: k"], "key-name: is not a key here"],
  [["flavor-name: 5"], "flavor-name: is 5"],
  [["flavor-name: small", "weight: 1"], "has no size"],
])("config-validate refuses %j", (offerings, message) => {
  const text = openstack("cloud-image: i", offerings);
  expect(verdict(text)).toContainEqual(expect.stringContaining(message));
  expect(exitCode(text)).toBe(1);
});

test.each([
  ["weight: -1", "weight: is -1"],
  ["max-price: -0.1", "max-price: is -0.1"],
])("the loader refuses %s", (keys, message) => {
  const text = openstack("cloud-image: i, flavor-name: small", [keys]);
  expect(load(text).errors).toContainEqual(expect.stringContaining(message));
});

test("what is wrong with a label is said once, and of an offering at its own line", () => {
  const text = openstack("cloud-image: j", ["flavor-name: small", "flavor-name: large, min-ram: x"]);
  const { errors } = load(text);
  expect(errors.filter((line) => line.includes("names j"))).toHaveLength(1);
  expect(errors.filter((line) => line.includes("offerings[1].min-ram"))).toHaveLength(1);
});

test("a zone has to be one of the pool's", () => {
  const text = `labels: [{name: a}]
providers:
  - {name: x, cloud: c, cloud-images: [{name: i}], pools: [{name: p, availability-zones: [n, s], labels: [{name: a, cloud-image: i, offerings: [{flavor-name: f, zone: west}, {flavor-name: f, zone: n}]}]}]}`;
  expect(load(text).errors).toEqual([expect.stringContaining("is west, which is not a zone of pool p")]);
});

test.each([
  ["azure", ["use-spot: true", "use-spot: true, spot-max-price: 0.02"], "Standard_B1ls, spot"],
  ["openstack", ["flavor-name: small, weight: 1", "flavor-name: small"], "small"],
  ["aws", ["instance-type: m5.large", "instance-type: m5.large, max-price: 1"], "m5.large"],
] as const)("offerings of one type and zone are refused: %s", (driver, offerings, type) => {
  const { provider, label } = CLOUDS[driver];
  const { errors } = load(fileOf(driver, provider, label, offerings));
  expect(errors).toEqual([
    expect.stringContaining(`is bought as ${type} in any zone, and so is offerings[0]; remove one of them`),
  ]);
  expect(errors[0]).toContain("offerings[1]");
});
