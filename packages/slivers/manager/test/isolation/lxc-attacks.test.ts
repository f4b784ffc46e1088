import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../../../../testing/patience.ts";
import { PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { CAPABILITIES } from "../../src/isolation/lxc/lxc-config.ts";
import { FIRST_ID, IDS } from "../../src/isolation/lxc/names.ts";
import { besideNeighbour } from "./machine/beside.ts";
import { ATTACKS, attackUntil, WARM } from "./machine/neighbours.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, begin, bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** Numbers of capabilities, from linux/capability.h. */
const NUMBERS: Readonly<Record<(typeof CAPABILITIES)[number], number>> = {
  chown: 0,
  dac_override: 1,
  fowner: 3,
  fsetid: 4,
  kill: 5,
  setgid: 6,
  setuid: 7,
  setpcap: 8,
  net_bind_service: 10,
  net_raw: 13,
  sys_chroot: 18,
  mknod: 27,
  audit_write: 29,
  setfcap: 31,
};
const BOUNDING = CAPABILITIES.reduce((sum, name) => sum | (1n << BigInt(NUMBERS[name])), 0n);

describe.skipIf(whyNot() !== undefined)("code in a sliver is hostile", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(() => real?.stop());

  describe.each(["account", "container"] as const)("%s", (kind) => {
    let backEnd: LxcBackEnd;
    beforeAll(() => {
      backEnd = real.backEnd(kind);
    });

    test("it has ids, capabilities and system calls of its own, and no more", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: {} }));
      const status = await inSliver(real, 1, "cat /proc/self/status /proc/self/uid_map; id -u");
      expect(BigInt(`0x${/CapBnd:\s+(\S+)/.exec(status)![1]}`)).toBe(BOUNDING);
      expect(/CapEff:\s+(\S+)/.exec(status)![1]).toBe("0000000000000000");
      expect(status).toMatch(/Seccomp:\s+2/);
      expect(status).toMatch(new RegExp(`\\n\\s+0\\s+${FIRST_ID + IDS}\\s+${IDS}\\n1000$`));
      expect(backEnd.account(1).uid).toBe(FIRST_ID + IDS + 1000);
    });

    test("it gets no other namespaces, devices, kernel settings or subvolumes", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: {} }));
      const root = kind === "container" ? "sudo " : "";
      expect(await inSliver(real, 1, "unshare -U true && echo through")).not.toContain("through");
      expect(await inSliver(real, 1, `${root}unshare -m true && echo through`)).not.toContain("through");
      expect(await inSliver(real, 1, `${root}mount -t tmpfs x /tmp && echo through`)).not.toContain(
        "through",
      );
      const block = `${root}mknod /tmp/disk b 254 0 && ${root}head -c1 /tmp/disk | wc -c`;
      expect(await inSliver(real, 1, block)).not.toMatch(/^1$/m);
      expect(
        await inSliver(real, 1, `${root}sh -c 'echo 1 >/proc/sys/vm/drop_caches' && echo through`),
      ).not.toContain("through");
      expect(
        await inSliver(real, 1, `${root}sh -c 'echo 0 >/sys/kernel/uevent_seqnum' && echo through`),
      ).not.toContain("through");
      // Of a subvolume of its own it would have disk without a limit; the high half of the number is ignored by ioctl.
      for (const code of ["0x5000940e", "0x15000940e", "0x50009418"]) {
        const script = `perl -e 'open(D, "<", "/tmp") or die; my $b = pack("q a4088", 0, "mine"); print syscall(16, fileno(D), ${code}, $b), " $!\\n"'; ls -d /tmp/mine`;
        const said = await inSliver(real, 1, script);
        expect(said).toMatch(/^-1 Operation not permitted/);
        expect(said).not.toMatch(/^\/tmp\/mine/m);
      }
    });

    test("it reaches no listener of the host and no other sliver, and cannot say that it is another", async () => {
      const server = createServer((socket) => socket.on("error", () => {}).end("in\n"));
      await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
      const { port } = server.address() as { port: number };
      try {
        await bringUp(backEnd, configsOf(real.key, { 1: {}, 2: {} }));
        const hosts = Object.values(networkInterfaces()).flatMap((all) =>
          (all ?? []).filter(({ family }) => family === "IPv4").map(({ address }) => address),
        );
        const targets = [...new Set([...hosts, "169.254.1.1"])].filter((one) => !one.startsWith("127."));
        expect(targets.length).toBeGreaterThan(1);
        const probe = (host: string, to: number) =>
          `timeout 1 bash -c 'exec 3<>/dev/tcp/${host}/${to}; head -1 <&3' 2>&1`;
        for (const host of targets) expect(await inSliver(real, 1, probe(host, port))).not.toMatch(/^in$/m);
        expect(await inSliver(real, 1, probe(addressOf(2), 22))).not.toContain("SSH-");
        // The probe finds what there is to find.
        expect(await inSliver(real, 1, probe(addressOf(1), 22))).toContain("SSH-");
        // What is in a local socket of the host's is in another tree and another network.
        expect(await inSliver(real, 1, "ls /run | tr '\\n' ' '; grep -c @ /proc/net/unix")).not.toMatch(
          /nodeyard-sliver|docker|dbus/,
        );
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    });

    test("root inside changes no address, no route, no queue and no rule, and sends no packets of its own making", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: {} }));
      const root = kind === "container" ? "sudo " : "";
      for (const attempt of [
        "ip addr add 10.213.0.9/32 dev eth0",
        "ip route add 192.0.2.78/32 dev eth0 src 10.213.0.9",
        "ip link set eth0 down",
        "tc qdisc add dev eth0 root pfifo",
        // A table of nf_tables: NETLINK_NETFILTER, NFNL_MSG_BATCH_BEGIN and NFT_MSG_NEWTABLE.
        `perl -MSocket -e 'socket(S, 16, SOCK_RAW, 12) or exit 1; my $b = sub { pack("LSSLLCCn", 20, $_[0], 1, 1, 0, 0, 0, 10) }; my $t = pack("LSSLLCCn", 28, 2560, 0x405, 2, 0, 1, 0, 0) . pack("SS", 6, 1) . "x\\0\\0\\0"; $t = pack("L", length $t) . substr($t, 4); send(S, $b->(16) . $t . $b->(17), 0) or exit 1; recv(S, my $r, 4096, 0); exit(unpack("l", substr($r, 16, 4)) == 0 ? 0 : 1)'`,
        `perl -e 'syscall(41, 0x100000011, 3, 0x300) >= 0 or exit 1'`,
        `perl -e 'use Socket; socket(S, 17, SOCK_RAW, 0x300) or exit 1'`,
      ])
        expect(await inSliver(real, 1, `${root}${attempt} && echo through`), attempt).not.toContain(
          "through",
        );
      // Packets of its own are dropped where they come out under another address; ping is none of them.
      if (kind === "container")
        expect(
          await inSliver(real, 1, `sudo perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) and print "raw"'`),
        ).toBe("raw");
    });

    test("a fork bomb ends at its limit, and with its sliver", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: { pids: 40 }, 2: {} }));
      const bomb = begin(real, 1, "bomb() { bomb | bomb & }; bomb; while :; do bomb; done");
      const { cgroups } = await ready(real);
      // The kernel's own number: a list of processes is read while some die and others come.
      const { mount } = cgroups.layout.controllers.get("pids")!;
      const count = () => Number(readFileSync(`${mount}/${PARENT}/ny-1.1/pids.current`, "utf8"));
      await until(async () => count() >= 30);
      for (let look = 0; look < 100; look++) expect(count()).toBeLessThanOrEqual(40);
      expect(await inSliver(real, 2, "echo well")).toBe("well");
      const { signal } = new AbortController();
      await backEnd.stop({ index: 1, incarnation: 1 }, signal);
      expect(await cgroups.processes("ny-1.1")).toEqual([]);
      bomb.kill();
    });

    test("memory ends where it should, for its sliver alone", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: { memoryCap: 65_536 }, 2: {} }));
      const hog = `perl -e 'my @a; for (1..200) { push @a, "x" x 1048576; print "$_\\n" }' | tail -1`;
      const said = await inSliver(real, 1, hog);
      expect(Number(/^\d+/m.exec(said)?.[0] ?? 0)).toBeLessThan(64);
      expect(await inSliver(real, 2, hog.replace("200", "90"))).toBe("90");
      expect(await inSliver(real, 2, "echo well")).toBe("well");
    });

    test("disk ends where it should, and is free for the next one", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: { disk: 32_768, memoryCap: 524_288 }, 2: {} }));
      const fill = "dd if=/dev/urandom of=/tmp/f bs=1M count=100 2>&1; sync; stat -c %s /tmp/f";
      const bytes = Number((await inSliver(real, 1, fill)).split("\n").at(-1));
      expect(bytes).toBeGreaterThan(20 * 1024 * 1024);
      expect(bytes).toBeLessThanOrEqual(33 * 1024 * 1024);
      expect(
        await inSliver(real, 2, "dd if=/dev/urandom of=/tmp/f bs=1M count=20 2>&1; stat -c %s /tmp/f"),
      ).toMatch(/20971520$/);
    });

    test("a flood of connections stops at its number", async () => {
      await bringUp(backEnd, configsOf(real.key, { 1: { connections: 5 } }));
      const { execFileSync } = await import("node:child_process");
      const rules = () =>
        execFileSync("nft", ["list", "chain", "inet", "nodeyard-slivers", "s1"], { encoding: "utf8" });
      const dropped = (rule: RegExp) => Number(rule.exec(rules())?.[1] ?? -1);
      expect(rules()).toContain("ct count over 5");
      await inSliver(
        real,
        1,
        "for i in $(seq 40); do timeout 0.3 bash -c 'exec 3<>/dev/tcp/192.0.2.77/80' 2>/dev/null & done; wait",
      );
      expect(dropped(/ip saddr != 10\.213\.0\.1 counter packets (\d+)/)).toBe(0);
    });
  });
});

describe.skipIf(whyNot() !== undefined)("beside hostile code", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(() => real?.stop());

  // A flood's packets are the kernel's own work, which no group is charged: starts and calls beside it are not promised.
  const { flood: _, ...promised } = ATTACKS;
  test.each(Object.entries(promised))("a %s makes nothing of a neighbour's worse", async (_, script) => {
    const backEnd = real.backEnd("container");
    const [config] = configsOf(real.key, { 1: { memoryCap: 65_536, connections: 50 } });
    await besideNeighbour(real, backEnd, {
      config: config!,
      attack: async (over, goesOn) => {
        const { done } = attackUntil(over, script, { real, backEnd, config: config! });
        goesOn(done);
        await Promise.race([done, sleep(WARM)]);
      },
    });
  });
});

async function ready(real: RealMachine) {
  const machine = real.machine();
  await machine.prepare(new AbortController().signal);
  return machine;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 600 * patience(); tries++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("it did not come to be");
}
