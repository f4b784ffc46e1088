import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, expect } from "vitest";
import type { SliverConfig } from "../../../src/core/plan.ts";
import type { LxcBackEnd } from "../../../src/isolation/lxc/edge/lxc-back-end.ts";
import type { RealMachine } from "./rig.ts";
import { begin, bringUp, configsOf, inSliver } from "./slivers.ts";
import { SINK, WORLD, WORLD_DEVICE } from "./world.ts";
import { worldSite } from "./world-site.ts";

/** Of what it does alone, a neighbour does at least so much beside an attacker. */
export const KEPT = 0.9;
/** The same, where neighbours have a core's worth of time to be measured in: what slivers promise. */
export const WITHIN = 0.95;
/** Times that its work is measured without attackers; and with them, at most. */
const ROUNDS = 3;
/** Seconds of each measurement. */
const MEASURED = 3;
/**
 * Against the rest of the machine slivers have all the weight there is: what is measured is they alone. Where they have the only core,
 * whoever logs in to measure needs some of it, too.
 */
export const WEIGHT = availableParallelism() > 1 ? 10_000 : 1_000;
/** Milliseconds that an attacker has to be at its worst. */
export const WARM = 1_000;
/** Looks, and milliseconds between them, for the end of a sliver whose processes are being killed. */
const LOOKS = 50;
const BETWEEN = 100;
/** Before the second restart, milliseconds; each further pause is twice as long. */
const FIRST_REST = 1_000;

const NEIGHBOUR = 1;

/** Each is without an end, within one sliver. */
export const ATTACKS = {
  "fork bomb": "bomb() { bomb | bomb & }; bomb; while :; do bomb; done",
  "memory hog": `while :; do perl -e 'my @a; push @a, "x" x 1048576 while 1'; done`,
  "disk filler":
    "while :; do dd if=/dev/zero of=/tmp/f bs=1M count=200 2>/dev/null; sync; rm -f /tmp/f; done",
  flood: `for i in 1 2 3; do perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); my $to = sockaddr_in(9, inet_aton("${WORLD}")); send(S, "x" x 1400, 0, $to) while 1' & done; while :; do timeout 0.2 bash -c 'exec 3<>/dev/tcp/${WORLD}/${SINK}' 2>/dev/null & done`,
} as const;

/** Where the machine limits what root itself may raise, podman's own defaults fail. */
export const ULIMITS = "--ulimit nofile=1024:1024 --ulimit nproc=300:300";
export const PODMAN = "podman --runtime runc --cgroup-manager=cgroupfs";

/** Makes podman an image with this machine's busybox, once in a sliver. */
export const IMPORT = `mkdir -p /b/bin && cp /usr/bin/busybox /b/bin/ && ln -sf busybox /b/bin/sh && tar -C /b -cf /b.tar . &&
  mkdir -p /etc/containers && echo '{"default":[{"type":"insecureAcceptAnything"}]}' > /etc/containers/policy.json &&
  ${PODMAN} import /b.tar mini 2>&1 | tail -1`;

/** Forks, memory, disk and network at once, in a container that podman runs; prints a line when it begins. */
export const NESTED = `{ ${PODMAN} image exists mini || { ${IMPORT}; }; } >/dev/null && exec ${PODMAN} run --rm ${ULIMITS} --memory 100m --network=host mini /bin/sh -c '
  while :; do tail /dev/zero; done 2>/dev/null &
  while :; do dd if=/dev/zero of=/f bs=1M count=100; sync; rm -f /f; done 2>/dev/null &
  while :; do yes | nc ${WORLD} ${SINK}; done 2>/dev/null >/dev/null &
  echo it begins
  while :; do for i in 1 2 3 4 5 6 7 8; do (while :; do (:); done) & done; wait; done'`;

/**
 * Processors of user-mode Linux are threads of the machine below, which also works for the attackers: in the same time they do 4,700 turns or
 * 8,500, with no attacker. What its kernel can promise, and what counts there, is the time: hundredths of a second.
 */
const COUNTED = readFileSync("/proc/cpuinfo", "utf8").includes("User Mode Linux")
  ? "my @spent = times; $n = int 100 * ($spent[0] + $spent[1] + $spent[2] + $spent[3]);"
  : "";

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
  ${COUNTED}
  print "$n\\n"'`;

/** Prints how many bytes a connection took in its time. */
export const SEND = `perl -MTime::HiRes=time -MSocket -e '
  socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_SNDBUF, 65536);
  connect(S, sockaddr_in(${SINK}, inet_aton("${WORLD}"))) or die "connect: $!";
  my ($end, $n) = (time + ${MEASURED}, 0);
  while (time < $end) { $n += syswrite(S, "x" x 16384) // die "write: $!"; }
  print "$n\\n"'`;

const SMALL = { memoryCap: 65_536, pids: 64, disk: 65_536, connections: 50 };
const NESTING = { memoryCap: 262_144, pids: 400, disk: 400_000, connections: 50 };

/**
 * A sliver and its attackers on one machine for the tests of a `describe`; what is returned measures, with an attacker for each attack.
 * `nesting`: attackers have the class of that name and this machine's programs, and are the root of their slivers.
 */
export function neighbours(
  nesting = false,
): (attacks: readonly string[], work: string, enough: number) => Promise<number> {
  const site = worldSite({ outbound: { device: WORLD_DEVICE }, weight: WEIGHT });
  let backEnd: LxcBackEnd;
  const { signal } = new AbortController();
  /** By work: the most that the neighbour does of it alone. */
  const undisturbed = new Map<string, number>();
  beforeAll(() => {
    backEnd = site.real.backEnd(nesting ? "account" : "container");
  });

  /** What the neighbour does beside the attackers, as a part of what it does alone: more than `enough`, or the best of all rounds. */
  async function kept(attacks: readonly string[], work: string, enough: number): Promise<number> {
    // One core for all. The neighbour never gets more than it is promised, so that without an attacker it has that.
    const rspecs = {
      [NEIGHBOUR]: { cpuGuarantee: 400, cpuCap: 400, netGuarantee: 20_000_000, netCap: 20_000_000 },
      ...Object.fromEntries(attacks.map((_, at) => [NEIGHBOUR + 1 + at, nesting ? NESTING : SMALL])),
    };
    const [own, ...others] = configsOf(site.real.key, rspecs, [0]);
    const hostile = others.map((config) => (nesting ? { ...config, nesting } : config));
    const measure = async () => {
      const said = await inSliver(site.real, NEIGHBOUR, work);
      expect(said).toMatch(/^\d+$/);
      return Number(said);
    };
    /** What it does alone, while the attackers are stopped. */
    const alone = async () => {
      let most = 0;
      await Promise.all(hostile.map((config) => backEnd.stop(config, signal)));
      for (let round = 0; round < ROUNDS; round++) most = Math.max(most, await measure());
      await Promise.all(hostile.map((config) => backEnd.start(config, signal)));
      undisturbed.set(work, most);
      return most;
    };
    await bringUp(backEnd, [own!, ...hostile]);
    let most = undisturbed.get(work) ?? (await alone());
    // The least disturbed measurement of each counts: what else runs on the machine only takes, and a neighbour without protection loses
    // in every round. So a round that is good enough is the last. Before another round both are measured anew, because a machine that has
    // become slower since would count against the slivers.
    let best = (await besides(hostile, attacks, measure)) / most;
    for (let round = 1; round < ROUNDS && best <= enough; round++) {
      most = await alone();
      best = Math.max(best, (await besides(hostile, attacks, measure)) / most);
    }
    return best;
  }

  /** What `measure` says while the attacks are at their worst. */
  async function besides(
    hostile: readonly SliverConfig[],
    attacks: readonly string[],
    measure: () => Promise<number>,
  ): Promise<number> {
    const over = new AbortController();
    const from = (config: SliverConfig) => ({
      real: site.real,
      backEnd,
      config,
      ...(nesting ? { login: "root" } : {}),
    });
    const attackers = attacks.map((script, at) => attackUntil(over.signal, script, from(hostile[at]!)));
    // An attacker that gives up fails the test, also while others are waited for.
    const failed = Promise.race(attackers.map(({ done }) => done.then(() => new Promise<never>(() => {}))));
    failed.catch(() => undefined);
    try {
      if (nesting) await Promise.race([failed, Promise.all(attackers.map(({ began }) => began))]);
      await Promise.race([failed, pause(WARM)]);
      return await Promise.race([failed, measure()]);
    } finally {
      over.abort();
      await Promise.allSettled(attackers.map(({ done }) => done));
    }
  }

  return kept;
}

/** The sliver from which an attack comes. */
interface Attacker {
  readonly real: RealMachine;
  readonly backEnd: LxcBackEnd;
  readonly config: SliverConfig;
  readonly login?: string;
}

/**
 * Runs a script in an attacker's sliver until it is `over`. Where the kernel kills a sliver for its memory, as a whole, it is started
 * again, as the manager does, after ever longer pauses. `began`: the script has printed something. `done` rejects when the script ends by itself.
 */
export function attackUntil(over: AbortSignal, script: string, { real, backEnd, config, login }: Attacker) {
  const { signal } = new AbortController();
  let child = begin(real, config.index, script, login);
  const began = once(child.stdout!, "data");
  began.catch(() => undefined);
  over.addEventListener("abort", () => child.kill());
  const isRunning = async () =>
    (await backEnd.inspect(signal)).some((one) => one.index === config.index && one.phase === "running");
  const goOn = async () => {
    for (let ends = 0; ; ends++) {
      await once(child, "exit");
      if (over.aborted) return;
      for (let look = 0; await isRunning(); look++) {
        if (look === LOOKS) throw new Error(`${script}\nended by itself`);
        await pause(BETWEEN);
      }
      await pause(ends && FIRST_REST * 2 ** (ends - 1), undefined, { signal: over }).catch(() => undefined);
      if (over.aborted) return;
      await backEnd.start(config, signal);
      if (over.aborted) return;
      child = begin(real, config.index, script, login);
    }
  };
  return { began, done: goOn() };
}
