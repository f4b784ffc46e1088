import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { SliverConfig } from "../../src/core/plan.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";
import { isolationSchema, prefixOf } from "../../src/isolation/lxc/options.ts";
import {
  defaultDevice,
  linkSpeed,
  nameservers,
  resolvers,
} from "../../src/isolation/network/edge/host-network.ts";
import { Network } from "../../src/isolation/network/edge/network.ts";
import { frameScript, sliverScript } from "../../src/isolation/network/rules.ts";

const ROUTES = `Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000
down0\t00000000\t0101A8C0\t0002\t0\t0\t0\t00000000
eth1\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000
eth1\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF
`;

describe("IPv6 of slivers", () => {
  const outbound = { device: "eth0", network: "10.213", refuse: ["fd00:ec2::/32"] };
  const options = (ipv6: unknown) => isolationSchema.parse({ outbound: { ipv6 } });
  const own = (ipv6: unknown) => namesOf(4000, "10.213", undefined, prefixOf(options(ipv6))).address6;

  test("have no prefix without a setting, then a private one of their own, or the owner's", () => {
    expect(namesOf(1, "10.213", undefined, prefixOf(isolationSchema.parse({}))).address6).toBeUndefined();
    expect(own(false)).toBeUndefined();
    expect(own(true)).toBe("fd6e:7964:ad5::fa0");
    expect(own("2001:db8:5:6::/64")).toBe("2001:db8:5:6::fa0");
    for (const wrong of ["2001:db8::/48", "2001:db8:5:6:7::/64", "::/64", "10.0.0.0/8", "fd00::1"])
      expect(() => options(wrong), wrong).toThrow();
    for (const refuse of ["fd00::/8", "::/0", "10.0.0.0/8"])
      expect(isolationSchema.parse({ outbound: { refuse: [refuse] } }).outbound).toEqual({
        refuse: [refuse],
      });
    expect(() => isolationSchema.parse({ outbound: { refuse: ["fd00::/8; drop"] } })).toThrow();
  });

  test("passes from its own address and to no listener of the host; routers' advertisements pass nowhere", () => {
    const frame = frameScript({ ...outbound, ipv6: "fd6e:7964:ad5::/64" });
    const neighbours = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept";
    expect(frame).toContain(`input iifname "ny-v*" ${neighbours}`);
    expect(frame).toContain("ip6 daddr fd00:ec2::/32 drop");
    expect(frame).toContain('world ip6 saddr fd6e:7964:ad5::/64 oifname "eth0" masquerade');
    expect(frameScript({ ...outbound, ipv6: "routed" })).not.toContain("ip6 saddr");
    expect(frameScript(outbound)).not.toContain("icmpv6");
    const rules = { device: "ny-v7", address: "10.213.0.7", chain: "s7", connections: 5 };
    expect(sliverScript(rules)).toContain("s7 meta nfproto ipv6 drop");
    const chain = sliverScript({ ...rules, address6: "fd6e:7964:ad5::7" }).split("\n");
    expect(chain.filter((line) => line.includes("ip6"))).toEqual([
      `add rule inet nodeyard-slivers s7 ip6 saddr { fe80::/10, fd6e:7964:ad5::7 } ${neighbours}`,
      "add rule inet nodeyard-slivers s7 ip6 saddr != fd6e:7964:ad5::7 counter drop",
    ]);
    for (const address6 of ["fd6e::7; flush ruleset", "fd6e::7\n", "", "7"])
      expect(() => sliverScript({ ...rules, address6 })).toThrow(/is no IPv6 address/);
  });

  test("of a host's router is closed for its neighbours in the family that slivers have turned on, and in no other", () => {
    const frame = frameScript(outbound, undefined, [{ family: "ipv6", device: "eth0" }]);
    expect(frame).toContain('iifname "eth0" meta nfproto ipv6 ct state new ct status & dnat == 0 drop');
    expect(frame).not.toContain("nfproto ipv4");
  });
});

describe("the way of slivers to the world", () => {
  test("through an interface that this machine has not is refused by its name, before anything is made", async () => {
    const outbound = { device: "nowhere0", refuse: [], network: "10.213" };
    const forwarding = join(mkdtempSync(join(tmpdir(), "nodeyard-network-")), "forwarding");
    const network = new Network({
      network: "10.213",
      link: 1_000_000_000,
      outbound,
      forwarding,
      clock: systemClock,
    });
    await expect(
      network.admit(
        namesOf(1, "10.213"),
        { effective: {} } as SliverConfig,
        AbortSignal.timeout(patient(10_000)),
      ),
    ).rejects.toMatchObject({
      code: "sliver.command",
      message: expect.stringMatching(/^this machine has no interface nowhere0 .*isolation\.outbound/),
    });
  });

  test("is the default route's where nothing is configured, and none where that says so", () => {
    expect(isolationSchema.parse({}).outbound).toEqual({
      refuse: ["169.254.0.0/16", "fd00:ec2::/32", "fd20:ce::/32"],
    });
    expect(isolationSchema.parse({ outbound: false }).outbound).toBe(false);
    expect(defaultDevice(ROUTES)).toBe("eth1");
    expect(defaultDevice("Iface\tDestination\n")).toBeUndefined();
  });

  test("has the speed that the kernel knows of its interface, and no limit of ours where it knows none", () => {
    expect(linkSpeed("lo")).toBe(10_000_000_000);
    expect(linkSpeed("nowhere0")).toBe(10_000_000_000);
    expect(linkSpeed(undefined)).toBe(10_000_000_000);
  });

  test("a sliver asks resolvers that it reaches: never one on the host's loopback", () => {
    const stub = "nameserver 127.0.0.53\noptions edns0\nsearch example.org\n";
    const real = "nameserver 192.0.2.1\nsearch example.org\n";
    expect(resolvers([real, "nameserver 192.0.2.9\n"])).toBe(real);
    expect(resolvers([stub, "", real])).toBe(real);
    expect(resolvers([`nameserver ::1\n${real}`])).toBe(real);
    expect(resolvers(["nameserver 2001:db8::1\n"])).toBe("nameserver 2001:db8::1\n");
    expect(resolvers([stub])).toBe("");
  });

  test("leads to name servers also in a range that is refused, and there to their port for names only", () => {
    const servers = nameservers("search x\nnameserver 169.254.169.254\nnameserver 2001:db8::1\n");
    expect(servers).toEqual(["169.254.169.254", "2001:db8::1"]);
    expect(nameservers("nameserver fe80::1%eth0\nnameserver x\n")).not.toContain("x");
    const frame = frameScript({
      device: "eth0",
      network: "10.213",
      refuse: ["169.254.0.0/16"],
      resolvers: servers,
    });
    const rules = frame.split("\n");
    const names = rules.findIndex((line) => /169\.254\.169\.254 .*dport 53 accept$/.test(line));
    expect(names).toBeGreaterThan(-1);
    expect(rules.findIndex((line) => line.includes("169.254.0.0/16 drop"))).toBeGreaterThan(names);
  });
});
