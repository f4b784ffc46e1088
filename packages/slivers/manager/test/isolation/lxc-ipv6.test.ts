import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";
import { HOST6, SINK, WORLD_DEVICE, WORLD6 } from "./machine/world.ts";
import { worldSite } from "./machine/world-site.ts";

const FORWARDS = `/proc/sys/net/ipv6/conf/all/force_forwarding`;
const OWN = (index: number) => `fd6e:7964:ad5::${index}`;
/** A line of /proc/net/if_inet6 for an address that is no longer tentative, and not of the link only. */
const GLOBAL = "^[0-9a-f]{32} [0-9a-f]+ .. 00 +8. +eth0";
const ROUTED = "2001:2:0:220::/64";

/** A connection from a shell; `there` when somebody answered or took it. */
const probe = (host: string, port: number) =>
  `timeout 2 bash -c 'exec 3<>/dev/tcp/${host}/${port}; echo hello >&3' 2>/dev/null && echo there || echo not there`;
const fromWorld = (script: string) =>
  execFileSync("ip", ["netns", "exec", "ny-world", "bash", "-c", script], { encoding: "utf8" }).trim();

// Before Linux 6.17 only the owner of a machine can make it forward IPv6, for all of its interfaces.
const cannot = whyNot() !== undefined || !existsSync(FORWARDS);
if (!existsSync(FORWARDS)) console.warn(`skipped: slivers with IPv6 need Linux 6.17 (${FORWARDS})`);

describe.skipIf(cannot)("slivers with IPv6", () => {
  const outbound = { device: WORLD_DEVICE, ipv6: true, refuse: ["fd00:ec2::/32"] };
  const site = worldSite({ outbound }, { ipv6: true });

  const forwards = () =>
    readFileSync(`/proc/sys/net/ipv6/conf/${WORLD_DEVICE}/force_forwarding`, "utf8").trim();
  /** Waits until its address may be used: the kernel first looks whether somebody else has it. */
  const ready = (index: number) =>
    inSliver(
      site.real,
      index,
      `for i in $(seq 300); do grep -qE '${GLOBAL}' /proc/net/if_inet6 && break; sleep 0.1; done`,
    );

  test("reach the world under the host's address, and nothing else: no listener of the host, no other sliver", async () => {
    const backEnd = site.real.backEnd("container");
    expect(forwards()).toBe("0");
    await bringUp(backEnd, configsOf(site.real.key, { 1: {}, 2: {} }));
    expect(forwards()).toBe("1");
    await Promise.all([ready(1), ready(2)]);
    expect(await inSliver(site.real, 1, `grep -E '${GLOBAL}' /proc/net/if_inet6`)).toMatch(
      /^fd6e79640ad500000000000000000001 /,
    );
    expect(await inSliver(site.real, 1, probe(WORLD6, SINK))).toBe("there");
    await expect.poll(() => site.world.count().peers, { timeout: patient(60_000) }).toContain(HOST6);
    // The probe finds what there is to find.
    expect(await inSliver(site.real, 1, probe(OWN(1), 22))).toBe("there");
    expect(await inSliver(site.real, 1, probe(OWN(2), 22))).toBe("not there");
    const server = createServer((socket) => socket.on("error", () => {}).end());
    await new Promise<void>((resolve) => server.listen(0, "::", resolve));
    const { port } = server.address() as { port: number };
    try {
      const hosts = Object.entries(networkInterfaces()).flatMap(([, all]) =>
        (all ?? [])
          .filter(({ family, internal }) => family === "IPv6" && !internal)
          .map(({ address }) => address),
      );
      expect(hosts).toContain(HOST6);
      for (const host of new Set(["fe80::1%eth0", ...hosts.filter((one) => !one.startsWith("fe80"))]))
        expect(await inSliver(site.real, 1, probe(host, port)), host).toBe("not there");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
    // The world begins nothing, even where it knows the way.
    fromWorld(`ip -6 route add fd6e:7964:ad5::/64 via ${HOST6}`);
    expect(fromWorld(probe(OWN(1), 22))).toBe("not there");
    // Nor does the host become a router for its neighbours.
    const rules = execFileSync("nft", ["list", "chain", "inet", "nodeyard-slivers", "forward"], {
      encoding: "utf8",
    });
    expect(rules).toMatch(new RegExp(`iifname "${WORLD_DEVICE}" meta nfproto ipv6 ct state new .*drop`));
    expect(rules).toMatch(/ip6 daddr fd00:ec2::\/32 drop/);
    await site.real.clear();
    expect(forwards()).toBe("0");
    fromWorld("ip -6 route del fd6e:7964:ad5::/64");
  });

  test("have no other address than their own, and are no router of the host's", async () => {
    const backEnd = site.real.backEnd("container");
    await bringUp(backEnd, configsOf(site.real.key, { 1: {} }));
    await ready(1);
    const before = execFileSync("ip", ["-6", "route"], { encoding: "utf8" });
    for (const attempt of [
      "ip -6 addr add fd6e:7964:ad5::9/128 dev eth0",
      "ip -6 route add 2001:db8::/32 dev eth0",
    ])
      expect(await inSliver(site.real, 1, `sudo ${attempt} && echo through`), attempt).not.toContain(
        "through",
      );
    // A router's advertisement under its own link-local address, by a raw socket; the kernel adds the checksum.
    const socket = (to: string) =>
      `use Socket qw(:all); socket(S, AF_INET6, SOCK_RAW, 58) or die; setsockopt(S, 41, 18, pack("i", 255)); setsockopt(S, 41, 16, pack("i", 255)); send(S, $m, 0, pack_sockaddr_in6(0, inet_pton(AF_INET6, "${to}"), 2)) or print "refused"; `;
    const advert = `$m = pack("CCnCCnNN", 134, 0, 0, 64, 0, 1800, 0, 0) . pack("CCCCNNN", 3, 4, 64, 192, 600, 600, 0) . inet_pton(AF_INET6, "2001:db8:bad::");`;
    await inSliver(site.real, 1, `sudo perl -MSocket=:all -e '${advert} ${socket("ff02::1")}'`);
    expect(execFileSync("ip", ["-6", "route"], { encoding: "utf8" })).toBe(before);
  });

  test("have their rate and their number of connections in it, too", async () => {
    const backEnd = site.real.backEnd("container");
    await bringUp(backEnd, configsOf(site.real.key, { 1: { connections: 5, netCap: 8_000_000 } }));
    await ready(1);
    const filters = execFileSync("tc", ["filter", "show", "dev", "ny-up"], { encoding: "utf8" });
    expect(filters).toMatch(/protocol ipv6 pref 16385 u32 .*flowid 1:1/);
    const { signal } = new AbortController();
    const sent = async () => (await backEnd.inspect(signal))[0]!.sent!.bytes;
    const before = await sent();
    await inSliver(site.real, 1, `head -c 500000 /dev/zero >/dev/tcp/${WORLD6}/${SINK}`);
    await expect
      .poll(async () => (await sent()) - before, { timeout: patient(60_000) })
      .toBeGreaterThan(500_000);
    const flood = `for i in $(seq 30); do timeout 3 bash -c 'exec 3<>/dev/tcp/${WORLD6}/${SINK}; sleep 2' 2>/dev/null & done; wait`;
    await inSliver(site.real, 1, flood);
    await expect.poll(() => site.world.count().open, { timeout: patient(60_000) }).toBe(5);
  });

  test("have none where the interface has none, which Status says", async () => {
    const { signal } = new AbortController();
    execFileSync("ip", ["address", "del", `${HOST6}/64`, "dev", WORLD_DEVICE]);
    try {
      const backEnd = site.real.backEnd("container");
      const configs = configsOf(site.real.key, { 1: {} });
      await bringUp(backEnd, configs);
      expect(
        await inSliver(site.real, 1, "grep -E '^[0-9a-f]{32} [0-9a-f]+ .. 00 .* eth0' /proc/net/if_inet6"),
      ).toBe("");
      expect(forwards()).toBe("0");
      expect((await backEnd.configure(configs[0]!, signal)).unenforced).toContain(
        `ipv6: ${WORLD_DEVICE} has no IPv6 address, so slivers have none either`,
      );
    } finally {
      execFileSync("ip", ["address", "add", `${HOST6}/64`, "dev", WORLD_DEVICE, "nodad"]);
    }
  });

  test("of a prefix that is routed to the machine are known in the world, which still begins nothing", async () => {
    const outbound = { device: WORLD_DEVICE, ipv6: ROUTED };
    const other = site.real.machineWith({ outbound });
    fromWorld(`ip -6 route add ${ROUTED} via ${HOST6}`);
    try {
      await bringUp(other, configsOf(site.real.key, { 3: {} }));
      await ready(3);
      expect(await inSliver(site.real, 3, probe(WORLD6, SINK))).toBe("there");
      await expect
        .poll(() => site.world.count().peers, { timeout: patient(60_000) })
        .toContain("2001:2:0:220::3");
      expect(fromWorld(probe("2001:2:0:220::3", 22))).toBe("not there");
    } finally {
      fromWorld(`ip -6 route del ${ROUTED}`);
    }
  });
});
