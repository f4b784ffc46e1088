import { expect, test } from "vitest";
import { serverSchema } from "../../src/api/kinds.ts";
import {
  addressesOf,
  natDestinationOf,
  networksFor,
  poolOfFloatingIps,
  type Reach,
  wantsFloatingIp,
} from "../../src/machines/addresses.ts";

const networks = [
  { id: "1", name: "inner", "router:external": false },
  { id: "2", name: "ext", "router:external": true },
  { id: "3", name: "lab", "router:external": false },
];
const reach = (more: Partial<Reach> = {}): Reach => ({
  networks,
  hints: [],
  private: false,
  forceIpv4: false,
  ipv6: false,
  ...more,
});
const hint = (name: string, more: object) => ({
  name,
  external: null,
  natDestination: false,
  natSource: false,
  defaultInterface: false,
  ...more,
});
const fixed = (addr: string, version = 4) => ({ addr, version, "OS-EXT-IPS:type": "fixed" });
const floating = (addr: string) => ({ addr, version: 4, "OS-EXT-IPS:type": "floating" });
const server = (addresses: object) => serverSchema.parse({ id: "s", status: "ACTIVE", addresses });

test("a floating address, then a fixed one of an external network, is the public one", () => {
  const both = server({ inner: [fixed("10.0.0.5"), floating("198.51.100.7")] });
  expect(addressesOf(both, reach(), null)).toEqual({
    interfaceIp: "198.51.100.7",
    publicIpv4: "198.51.100.7",
    privateIpv4: "10.0.0.5",
    publicIpv6: null,
  });
  const direct = server({ ext: [fixed("203.0.113.9")] });
  expect(addressesOf(direct, reach(), null)).toMatchObject({
    publicIpv4: "203.0.113.9",
    privateIpv4: "203.0.113.9",
  });
  expect(addressesOf(server({ inner: [fixed("10.0.0.5")] }), reach(), "198.51.100.8").interfaceIp).toBe(
    "198.51.100.8",
  );
});

test("IPv6 is used where this host has it, unless the cloud says not to; link-local and unique local never", () => {
  const dual = server({
    ext: [fixed("fe80::1", 6), fixed("fd00::1", 6), fixed("2001:db8::1", 6), fixed("203.0.113.9")],
  });
  expect(addressesOf(dual, reach({ ipv6: true }), null)).toMatchObject({
    interfaceIp: "2001:db8::1",
    publicIpv6: "2001:db8::1",
  });
  expect(addressesOf(dual, reach(), null).interfaceIp).toBe("203.0.113.9");
  expect(addressesOf(dual, reach({ ipv6: true, forceIpv4: true }), null)).toMatchObject({
    interfaceIp: "203.0.113.9",
    publicIpv6: null,
  });
  expect(addressesOf(server({ inner: [fixed("2001:db8::1", 6)] }), reach(), null).interfaceIp).toBe(
    "2001:db8::1",
  );
});

test("clouds.yaml may call a network external, the default one, or the one behind floating addresses", () => {
  const two = server({ inner: [fixed("10.0.0.5")], lab: [fixed("192.0.2.3")] });
  expect(addressesOf(two, reach({ hints: [hint("lab", { external: true })] }), null).publicIpv4).toBe(
    "192.0.2.3",
  );
  expect(
    addressesOf(two, reach({ hints: [hint("lab", { defaultInterface: true })] }), null).interfaceIp,
  ).toBe("192.0.2.3");
  expect(addressesOf(two, reach({ hints: [hint("lab", { natDestination: true })] }), null).privateIpv4).toBe(
    "192.0.2.3",
  );
  expect(addressesOf(two, reach({ private: true }), "198.51.100.7").interfaceIp).toBe("10.0.0.5");
});

test("a floating IP is wanted only by what is not reachable, and where there are any", () => {
  const inner = server({ inner: [fixed("10.0.0.5")] });
  expect(wantsFloatingIp(inner, reach())).toBe(true);
  expect(poolOfFloatingIps(reach())).toBe("2");
  expect(wantsFloatingIp(inner, reach({ private: true }))).toBe(false);
  expect(wantsFloatingIp(inner, reach({ networks: networks.slice(0, 1) }))).toBe(false);
  expect(wantsFloatingIp(server({ ext: [fixed("203.0.113.9")] }), reach())).toBe(false);
  expect(wantsFloatingIp(server({ inner: [fixed("10.0.0.5"), floating("198.51.100.7")] }), reach())).toBe(
    false,
  );
  expect(wantsFloatingIp(server({ inner: [fixed("2001:db8::1", 6)] }), reach())).toBe(false);
});

test("clouds.yaml may name the network of floating IPs, the one behind them, and the one of servers without any", () => {
  const more = reach({ networks: [...networks, { ...networks[1]!, id: "4", name: "other-ext" }] });
  expect(poolOfFloatingIps({ ...more, hints: [hint("other-ext", { natSource: true })] })).toBe("4");
  expect(
    poolOfFloatingIps({ ...more, hints: [hint("ext", { external: true }), hint("4", { natSource: true })] }),
  ).toBe("4");
  expect(natDestinationOf(reach({ hints: [hint("inner", { natDestination: true })] }))).toBe("1");
  expect(natDestinationOf(reach())).toBeUndefined();
  const hints = [hint("ext", {}), hint("inner", { defaultInterface: true })];
  expect(networksFor([], hints)).toEqual(["inner"]);
  expect(networksFor(["ext"], hints)).toEqual(["ext"]);
  expect(networksFor([], [])).toEqual([]);
});
