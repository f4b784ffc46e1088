import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostRules, numbersOf, parseSubnet, portOf } from "../src/machine/bridge.ts";
import { rules } from "../src/machine/firewall.ts";
import { savedKey } from "../src/machine/saved.ts";

const subject = {
  files: ["image", "kernel", ""],
  qemu: "7.2",
  host: "",
  accelerator: "tcg",
  script: "#!/bin/sh",
} as const;
const shape = { boot: null, cores: 1, ram: 256, disk: 10, seed: "nocloud" } as const;

describe("the name of a saved state", () => {
  const key = savedKey(subject, shape);

  test.each([
    ["another image", { files: ["image 2", "kernel", ""] }],
    ["another initial RAM disk", { files: ["image", "kernel", "initrd"] }],
    ["another QEMU", { qemu: "8.0" }],
    ["another processor", { host: "another" }],
    ["another accelerator", { accelerator: "kvm" as const }],
    ["another script", { script: "#!/bin/bash" }],
  ])("differs for %s", (_what, other) => {
    expect(savedKey({ ...subject, ...other }, shape)).not.toBe(key);
  });

  test.each([
    ["arguments", { boot: { kernel: "/k", initrd: null, arguments: "quiet" } }],
    ["cores", { cores: 2 }],
    ["memory", { ram: 512 }],
    ["disk", { disk: 11 }],
    ["seed", { seed: "fw_cfg" as const }],
  ])("differs with the %s", (_what, other) => {
    expect(savedKey(subject, { ...shape, ...other })).not.toBe(key);
  });

  test("does not know whose it is: labels that differ in keys and user data have one state", () => {
    const label = { ...shape, authorizedKeys: ["ssh-ed25519 AAAA"], userData: "#!/bin/sh" };
    expect(savedKey(subject, label)).toBe(key);
  });
});

describe("places on a bridge", () => {
  test.each(["10.93.0.0/24", "192.168.4.0/22", "172.16.0.8/29"])("%s is a network", (text) => {
    expect(parseSubnet(text)).toBeDefined();
  });

  test.each([
    "10.93.0.1/24",
    "10.93.0.0",
    "10.93.0.0/8",
    "10.93.0.0/30",
    "127.0.0.0/24",
    "224.0.0.0/24",
    "10.93.0.256/24",
    "::/64",
  ])("%s is none for machines", (text) => {
    expect(parseSubnet(text)).toBeUndefined();
  });

  test("no two have one address, hardware address or tap; none is the network's, the host's or the broadcast", () => {
    const subnet = parseSubnet("10.93.0.0/22")!;
    const { first, last } = numbersOf(subnet);
    const number = fc.integer({ min: first, max: last });
    fc.assert(
      fc.property(number, number, (one, other) => {
        const [a, b] = [portOf(subnet, one), portOf(subnet, other)];
        for (const what of ["address", "mac", "tap"] as const)
          expect(a[what] === b[what]).toBe(one === other);
        expect(["10.93.0.0", "10.93.0.1", "10.93.3.255"]).not.toContain(a.address);
        expect(a.tap.length).toBeLessThanOrEqual(15);
        expect(Number.parseInt(a.mac.slice(0, 2), 16) & 3).toBe(2);
      }),
    );
  });

  test("restricted lets nothing pass on; outbound passes on under the host's address", () => {
    const subnet = parseSubnet("10.93.0.0/24")!;
    expect(hostRules("nyq1", subnet, "restricted")).toMatch(/hook forward[^}]*iifname "nyq1" drop/);
    for (const text of [hostRules("nyq1", subnet, "outbound"), rules(1), rules(1, { first: 5, last: 6 })])
      expect(text).toMatch(/ip daddr 169\.254\.0\.0\/16 (drop|reject)/);
    expect(hostRules("nyq1", subnet, "outbound")).toMatch(/10\.93\.0\.0\/24 oifname != "nyq1" masquerade/);
  });
});
