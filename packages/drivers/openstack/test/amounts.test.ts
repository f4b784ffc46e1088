import type { LabelConfig } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { limitsOf, needOf, networkNeed } from "../src/amounts.ts";
import { machineType, type OpenstackLabelOwn } from "../src/config.ts";
import type { Reach } from "../src/machines/addresses.ts";

const label = (own: Partial<OpenstackLabelOwn>) =>
  ({ own: { minRam: 0, flavorName: "f", volumeSize: null, ...own } }) as LabelConfig<OpenstackLabelOwn>;
const flavor = { vcpus: 2, ram: 4_096 };

const reach = (more: Partial<Reach> = {}): Reach => ({
  networks: [
    { id: "1", name: "inner", "router:external": false },
    { id: "2", name: "outer", "router:external": true },
  ],
  hints: [],
  private: false,
  forceIpv4: false,
  ipv6: false,
  ...more,
});

test("a node takes a port for each network, and one where the cloud chooses", () => {
  expect(networkNeed([], null)).toEqual({ ports: 1 });
  expect(networkNeed(["inner", "outer"], null)).toEqual({ ports: 2 });
  expect(needOf(flavor, label({ volumeSize: 20 }), { ports: 1 })).toEqual({
    instances: 1,
    cores: 2,
    ram: 4_096,
    volumes: 1,
    "volume-gb": 20,
    ports: 1,
  });
});

test("a floating IP is counted where it is known that one will be wanted", () => {
  expect(networkNeed(["inner"], reach())).toEqual({ ports: 1, "floating-ips": 1 });
  expect(networkNeed(["inner", "outer"], reach())).toEqual({ ports: 2 });
  expect(networkNeed([], reach())).toEqual({ ports: 1 });
  expect(networkNeed(["inner"], reach({ private: true }))).toEqual({ ports: 1 });
  const [inner] = reach().networks;
  expect(networkNeed(["inner"], reach({ networks: [inner!] }))).toEqual({ ports: 1 });
});

test("limits of three services are merged; -1 and a missing value mean no limit, and 0 is a limit", () => {
  const compute = { maxTotalInstances: 20, maxTotalCores: -1 };
  const network = { port: 500, floatingip: 0, router: 10 };
  expect(limitsOf({ compute, volume: null, network })).toEqual({
    instances: 20,
    ports: 500,
    "floating-ips": 0,
  });
  expect(limitsOf({ compute, volume: { maxTotalVolumes: 3 }, network: null })).toEqual({
    instances: 20,
    volumes: 3,
  });
});

test("labels of one flavor share their luck, and those on volumes have their own", () => {
  const type = (own: Partial<OpenstackLabelOwn>) => machineType(label(own));
  expect(type({ networks: ["a"] })).toBe(type({ networks: ["b"] }));
  const types = [
    {},
    { flavorName: "g" },
    { minRam: 512 },
    { volumeSize: 10 },
    { flavorName: null, minRam: 512 },
  ];
  expect(new Set(types.map(type)).size).toBe(types.length);
});
