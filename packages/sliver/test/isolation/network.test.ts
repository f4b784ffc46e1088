import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SliverConfig } from "../../src/core/plan.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";
import { isolationSchema } from "../../src/isolation/lxc/options.ts";
import {
  defaultDevice,
  linkSpeed,
  nameservers,
  resolvers,
} from "../../src/isolation/network/edge/host-network.ts";
import { Network } from "../../src/isolation/network/edge/network.ts";
import { frameScript } from "../../src/isolation/network/rules.ts";

const ROUTES = `Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000
down0\t00000000\t0101A8C0\t0002\t0\t0\t0\t00000000
eth1\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000
eth1\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF
`;

describe("the way of slivers to the world", () => {
  test("through an interface that this machine has not is refused by its name, before anything is made", async () => {
    const outbound = { device: "nowhere0", refuse: [], network: "10.213" };
    const forwarding = join(mkdtempSync(join(tmpdir(), "nodeyard-network-")), "forwarding");
    const network = new Network({ link: 1_000_000_000, outbound, forwarding });
    await expect(
      network.admit(namesOf(1, "10.213"), { effective: {} } as SliverConfig, AbortSignal.timeout(10_000)),
    ).rejects.toMatchObject({
      code: "sliver.command",
      message: expect.stringMatching(/^this machine has no interface nowhere0 .*isolation\.outbound/),
    });
  });

  test("is the default route's where nothing is configured, and none where that says so", () => {
    expect(isolationSchema.parse({}).outbound).toEqual({ refuse: ["169.254.0.0/16"] });
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
    expect(servers).toEqual(["169.254.169.254"]);
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
