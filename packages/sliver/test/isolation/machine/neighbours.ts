import { availableParallelism } from "node:os";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import type { LxcBackEnd } from "../../../src/isolation/lxc/edge/lxc-back-end.ts";
import { type RealMachine, realMachine } from "./rig.ts";
import { begin, bringUp, configsOf, inSliver } from "./slivers.ts";
import { SINK, startWorld, WORLD, WORLD_DEVICE, type World } from "./world.ts";

/** Of what it does alone, a neighbour does at least so much beside an attacker. */
export const KEPT = 0.9;
/** Times that its work is measured without and with the attacker, in turn. */
const ROUNDS = 3;
/** Seconds of each measurement. */
const MEASURED = 3;
/**
 * Against the rest of the machine slivers have all the weight there is: what is measured is they alone. Where they have the only core,
 * whoever logs in to measure needs some of it, too.
 */
const WEIGHT = availableParallelism() > 1 ? 10_000 : 1_000;
/** Milliseconds that an attacker has to be at its worst. */
const WARM = 1_000;

const NEIGHBOUR = 1;

/** Each is without an end, within one sliver. */
export const ATTACKS = {
  "fork bomb": "bomb() { bomb | bomb & }; bomb; while :; do bomb; done",
  "memory hog": `while :; do perl -e 'my @a; push @a, "x" x 1048576 while 1'; done`,
  "disk filler":
    "while :; do dd if=/dev/zero of=/tmp/f bs=1M count=200 2>/dev/null; sync; rm -f /tmp/f; done",
  flood: `for i in 1 2 3; do perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); my $to = sockaddr_in(9, inet_aton("${WORLD}")); send(S, "x" x 1400, 0, $to) while 1' & done; while :; do timeout 0.2 bash -c 'exec 3<>/dev/tcp/${WORLD}/${SINK}' 2>/dev/null & done`,
} as const;

/** Prints how often it computed, forked, and wrote a file in its time. */
export const COMPUTE = `perl -MTime::HiRes=time -e '
  my ($end, $n, $x) = (time + ${MEASURED}, 0, 1);
  my $memory = "x" x (16 * 1048576);
  while (time < $end) {
    $x = ($x * 69069 + 1) % 4294967296 for 1 .. 2000;
    substr($memory, $x % length $memory, 1) = "y";
    if (++$n % 100 == 0) { open(my $f, ">", "/tmp/own") or die "open: $!"; print $f "x" x 65536; close $f or die "close: $!"; }
    if ($n % 500 == 0) { my $pid = fork // die "fork: $!"; exit 0 if $pid == 0; waitpid $pid, 0; }
  }
  print "$n\\n"'`;

/** Prints how many bytes a connection took in its time. */
export const SEND = `perl -MTime::HiRes=time -MSocket -e '
  socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_SNDBUF, 65536);
  connect(S, sockaddr_in(${SINK}, inet_aton("${WORLD}"))) or die "connect: $!";
  my ($end, $n) = (time + ${MEASURED}, 0);
  while (time < $end) { $n += syswrite(S, "x" x 16384) // die "write: $!"; }
  print "$n\\n"'`;

/** A sliver and its attackers on one machine for the tests of a `describe`; what is returned measures, with an attacker for each attack. */
export function neighbours(): (attacks: readonly string[], work: string) => Promise<number> {
  let world: World;
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  const { signal } = new AbortController();
  beforeAll(async () => {
    world = await startWorld();
    real = await realMachine({ outbound: { device: WORLD_DEVICE }, weight: WEIGHT });
    backEnd = real.backEnd("container");
  }, 1_800_000);
  afterEach(() => real.clear(), 60_000);
  afterAll(async () => {
    try {
      await real?.stop();
    } finally {
      world?.stop();
    }
  }, 60_000);

  /** What the neighbour does beside the attackers, as a part of what it does alone, in one run. */
  async function kept(attacks: readonly string[], work: string): Promise<number> {
    // One core for all. The neighbour never gets more than it is promised, so that without an attacker it has that.
    const rspecs = {
      [NEIGHBOUR]: { cpuGuarantee: 400, cpuCap: 400, netGuarantee: 20_000_000, netCap: 20_000_000 },
      ...Object.fromEntries(
        attacks.map((_, at) => [
          NEIGHBOUR + 1 + at,
          { memoryCap: 65_536, pids: 64, disk: 65_536, connections: 50 },
        ]),
      ),
    };
    const configs = configsOf(real.key, rspecs, [0]);
    const hostile = configs.slice(1);
    await bringUp(backEnd, configs);
    const alone: number[] = [];
    const beside: number[] = [];
    const measure = async () => {
      const said = await inSliver(real, NEIGHBOUR, work);
      expect(said).toMatch(/^\d+$/);
      return Number(said);
    };
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(hostile.map((config) => backEnd.stop(config, signal)));
      alone.push(await measure());
      await Promise.all(hostile.map((config) => backEnd.start(config, signal)));
      const attackers = attacks.map((attack, at) => begin(real, NEIGHBOUR + 1 + at, attack));
      try {
        await new Promise((resolve) => setTimeout(resolve, WARM));
        beside.push(await measure());
        // They were at it all the time.
        expect(attackers.filter(({ exitCode }) => exitCode !== null)).toEqual([]);
      } finally {
        for (const attacker of attackers) attacker.kill();
      }
    }
    // The least disturbed of each: what else runs on the machine only takes, and a neighbour without protection loses in every round.
    return Math.max(...beside) / Math.max(...alone);
  }

  return kept;
}
