import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { attackFrom, besideNeighbour } from "./machine/beside.ts";
import { WEIGHT } from "./machine/neighbours.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** A case takes what it can of one resource, says `taken`, and keeps it. */
interface Shared {
  readonly name: string;
  /** Perl. As the login of a plain sliver, or as the root of one with `nesting`. */
  readonly takes: string;
  readonly nesting: boolean;
  /** Perl, for a neighbour and for root of the machine: takes one more. It ends with an error when it is refused. */
  readonly needs: string;
}

const KEEP = `$| = 1; print "taken\\n"; sleep 60;`;
const SHARED: readonly Shared[] = [
  {
    name: "inotify instances",
    nesting: false,
    takes: `1 while syscall(294, 0) >= 0; ${KEEP}`,
    needs: "syscall(294, 0) >= 0 or die $!",
  },
  {
    name: "pending signals (timers)",
    nesting: false,
    takes: `my $t = "\\0" x 8; 1 while syscall(222, 1, 0, $t) == 0; ${KEEP}`,
    needs: 'my $t = "\\0" x 8; syscall(222, 1, 0, $t) == 0 or die $!',
  },
  {
    name: "bytes in message queues",
    nesting: false,
    // mq_open with O_CREAT: 10 messages of 8 KiB.
    takes: `my $n = 0; for (;;) { my $q = "q" . $n++; my $of = pack("q4 x32", 0, 10, 8192, 0); last if syscall(240, $q, 0102, 0600, $of) < 0 } ${KEEP}`,
    needs:
      'my $q = "nyq$$"; my $of = pack("q4 x32", 0, 10, 8192, 0); syscall(240, $q, 0102, 0600, $of) >= 0 or die $!; syscall(241, $q)',
  },
  {
    name: "pseudo terminals",
    nesting: true,
    takes: `my @f; for my $i (1 .. 20) { my $d = "/tmp/pts$i"; mkdir $d; my ($t, $o) = ("devpts", "newinstance,ptmxmode=0666"); syscall(165, $t, $d, $t, 0, $o) == 0 or last; while (open(my $f, "+<", "$d/ptmx")) { push @f, $f } } ${KEEP}`,
    needs: 'open(my $f, "+<", "/dev/ptmx") or die $!',
  },
  {
    name: "UTS namespaces",
    nesting: true,
    takes: `my @f; my $p = 0; for (1 .. 20) { @f = (); while (syscall(272, 0x04000000) == 0) { open(my $f, "<", "/proc/self/ns/uts") or last; push @f, $f; } last if $! != 24; defined($p = fork) or last; if ($p) { sleep 60; exit } } ${KEEP}`,
    needs: "syscall(272, 0x04000000) == 0 or die $!",
  },
];

describe.skipIf(whyNot() !== undefined)("what the kernel counts by owner", () => {
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  beforeAll(async () => {
    real = await realMachine({ weight: WEIGHT });
    backEnd = real.backEnd("account");
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(() => real?.stop());

  test.each(SHARED)(
    "$name that one takes are refused to no other, to no new sliver and not to root of the machine",
    async ({ takes, needs, nesting }) => {
      const [hostile, neighbour, later] = configsOf(real.key, { 1: { memoryCap: 3_145_728 }, 2: {}, 3: {} });
      const own = (config: typeof hostile) => ({ ...config!, nesting });
      await bringUp(backEnd, [own(neighbour)]);
      const login = nesting ? "root" : undefined;
      const one = `perl -e '${needs}' && echo granted`;
      expect(await inSliver(real, 2, one, login)).toBe("granted");
      await besideNeighbour(real, backEnd, {
        config: own(hostile),
        attack: async () => {
          await attackFrom(real, 1, `exec perl -e '${takes}'`, login);
          expect(await inSliver(real, 2, one, login)).toBe("granted");
          const { stdout, stderr } = spawnSync("sh", ["-c", one], { encoding: "utf8" });
          expect(`${stdout}${stderr}`).toBe("granted\n");
          await bringUp(backEnd, [own(later)]);
          await backEnd.destroy(later!, AbortSignal.timeout(patient(30_000)));
        },
      });
    },
  );

  test("neighbours that one asks for take none of the machine's table", async () => {
    const [hostile] = configsOf(real.key, { 1: {} });
    const many = `for i in $(seq 200); do echo addr add 10.77.0.$i/32 dev eth0; done | ip -force -batch - 2>/dev/null
      for i in $(seq 200); do ip neigh flush dev eth0 2>/dev/null; perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); bind(S, sockaddr_in(0, inet_aton("10.77.0.'$i'"))) or die; send(S, "x", 0, sockaddr_in(9, inet_aton("169.254.1.1")))'; done; echo asked`;
    const attack = async () => {
      expect(await inSliver(real, 1, many, "root")).toBe("asked");
      const shown = spawnSync("ip", ["neigh", "show", "nud", "all", "dev", "ny-v1"], { encoding: "utf8" });
      expect(shown.stdout).not.toContain("10.77.");
    };
    await besideNeighbour(real, backEnd, { config: { ...hostile!, nesting: true }, attack });
  });

  test("one without a word about processes leaves some to the others, and all slivers leave some to the machine", async () => {
    await bringUp(backEnd, configsOf(real.key, { 1: { pids: 0 } }));
    const { cgroups, tasks } = await prepared();
    const { mount } = cgroups.layout.controllers.get("pids")!;
    const limit = (group: string) => Number(readFileSync(join(mount, PARENT, group, "pids.max"), "utf8"));
    const machine = Math.min(
      ...["pid_max", "threads-max"].map((name) => Number(readFileSync(`/proc/sys/kernel/${name}`, "utf8"))),
    );
    expect(limit("ny-1.1")).toBeLessThan(limit(""));
    expect(limit("")).toBe(tasks);
    expect(tasks).toBeLessThan(machine);
  });

  test("keys are there for none: each of its users would have some of the kernel's own memory", async () => {
    const [hostile] = configsOf(real.key, { 1: {} });
    await bringUp(backEnd, [{ ...hostile!, nesting: true }]);
    const add = `perl -e 'my ($t, $n, $v) = ("user", "k", "v"); syscall(248, $t, $n, $v, 1, -3) >= 0 or print int $!'`;
    expect(await inSliver(real, 1, add, "root")).toBe("38");
  });

  test("what its connections hold counts for it alone", async () => {
    const [hostile] = configsOf(real.key, { 1: { memoryCap: 262_144, pids: 0 } });
    const { cgroups } = await prepared();
    const { mount, version } = cgroups.layout.controllers.get("memory")!;
    const text = (name: string) => readFileSync(join(mount, PARENT, "ny-1.1", name), "utf8");
    const file = (name: string) => Number(text(name));
    const fill = `use Socket; socket(L, PF_INET, SOCK_STREAM, 0); bind(L, sockaddr_in(7, INADDR_LOOPBACK)); listen(L, 500); $a = getsockname(L); my @s;
      for (1 .. 200) { socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, $a) or last; accept(my $t, L); push @s, $s, $t; $s->blocking(0); 1 while syswrite($s, "x" x 65536) } $| = 1; print "taken\\n"; sleep 60`;
    const attack = async () => {
      const taken = attackFrom(
        real,
        1,
        `exec perl -MIO::Handle -e '${fill.replace("sockaddr_in(7,", "sockaddr_in(0,")}'`,
      );
      // v2 counts it as memory, of which the sliver may be full before it has said a word: then the kernel ends it as a whole.
      const ended = () => version === 2 && /^oom_group_kill [1-9]/m.test(text("memory.events"));
      let isTaken = false;
      const told = taken.then(() => {
        isTaken = true;
      });
      told.catch(() => {});
      while (!isTaken && !ended()) await Promise.race([told, sleep(100)]);
      if (version === 1) {
        const [most, used] = ["limit", "usage"].map((name) => file(`memory.kmem.tcp.${name}_in_bytes`));
        expect(used).toBeGreaterThan(0);
        expect(used).toBeLessThan(2 * most!);
        expect(most).toBeLessThan(file("memory.limit_in_bytes"));
      } else expect(file("memory.current")).toBeLessThanOrEqual(file("memory.max"));
    };
    await besideNeighbour(real, backEnd, { config: hostile!, attack });
  });

  async function prepared() {
    const machine = real.machine();
    await machine.prepare(new AbortController().signal);
    return machine;
  }
});
