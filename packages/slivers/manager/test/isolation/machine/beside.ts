import { once } from "node:events";
import { expect } from "vitest";
import { patient } from "../../../../../../testing/patience.ts";
import type { SliverConfig } from "../../../src/core/plan.ts";
import type { LxcBackEnd } from "../../../src/isolation/lxc/edge/lxc-back-end.ts";
import { RealDaemon } from "./daemon.ts";
import { COMPUTE } from "./neighbours.ts";
import type { RealMachine } from "./rig.ts";
import { begin, bringUp, configsOf, inSliver } from "./slivers.ts";

/** What a neighbour needs for the same work beside an attack, as a part of what it needs alone: at most. */
const WORSE = 1.25;
/** Measurements of each kind alone, and at most beside an attack; and attacks until one round is good enough. */
const ALONE = 3;
const BESIDE = 8;
const ROUNDS = 3;
/** All of an attacker is gone so soon after its end, milliseconds. */
const GONE = 30_000;
/** Places of the neighbour and of one that is started beside an attack. No attacker has them. */
const [NEIGHBOUR, LATER] = [20, 21];
const CALLS = 20;

/** Prints the milliseconds of eight small files that are written and synced. */
const FSYNC = `perl -MTime::HiRes=time -MIO::Handle -e 'my $b = time;
  for (1 .. 8) { open(my $f, ">", "/tmp/own") or die "open: $!"; print $f "x" x 65536; $f->flush; $f->sync or die "sync: $!" }
  print 1000 * (time - $b)'`;

const KINDS = ["CPU", "fsync", "start", "API"] as const;
/** What a neighbour measures. Each is a time for the same work: less is better. */
export type Kind = (typeof KINDS)[number];

export interface Attack {
  readonly config: SliverConfig;
  /** Resolves when the attack is at its worst. */
  readonly attack: () => Promise<unknown>;
  /** Kinds that it may make worse, as docs/how-to/harden.md says. */
  readonly but?: readonly Kind[];
}

/** What neighbours needed alone, as measured last. */
const undisturbed = new WeakMap<RealMachine, Map<Kind, number>>();

/**
 * Attacks until nothing of a neighbour's is worse by a quarter than alone, at most three times, each from a new sliver that must be gone half
 * a minute after its end. Of each kind the least disturbed measurement counts: what else runs on the machine only takes, while what an attack
 * takes lacks in every one. Before another round the neighbour is measured alone anew, because a machine that has become slower since would
 * count against the slivers. `backEnd`: of the attacker.
 */
export async function besideNeighbour(
  real: RealMachine,
  backEnd: LxcBackEnd,
  { config, attack, but = [] }: Attack,
): Promise<void> {
  const { signal } = new AbortController();
  const kinds = KINDS.filter((kind) => !but.includes(kind));
  const own = real.backEnd("account");
  const [neighbour, later] = configsOf(real.key, {
    [NEIGHBOUR]: { cpuGuarantee: 400, cpuCap: 400 },
    [LATER]: {},
  });
  const time = async (work: () => Promise<unknown>) => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
  const said = async (script: string) => {
    const text = await inSliver(real, NEIGHBOUR, script);
    expect(text).toMatch(/^[\d.]+$/);
    return Number(text);
  };
  const measures: Readonly<Record<Kind, () => Promise<number>>> = {
    CPU: async () => 1_000_000 / (await said(COMPUTE)),
    fsync: () => said(FSYNC),
    start: async () => {
      const took = await time(() => bringUp(own, [later!]));
      await own.destroy(later!, signal);
      return took;
    },
    API: () =>
      time(async () => {
        for (let call = 0; call < CALLS; call++) await daemon!.report();
      }),
  };
  /** The least of so many measurements; none more when one is small enough. */
  const least = async (kind: Kind, times: number, enough = 0) => {
    let best = Number.POSITIVE_INFINITY;
    for (let at = 0; at < times && best > enough; at++) best = Math.min(best, await measures[kind]());
    return best;
  };
  const alone = undisturbed.get(real) ?? new Map<Kind, number>();
  undisturbed.set(real, alone);
  let daemon: RealDaemon | undefined;
  try {
    await bringUp(own, [neighbour!]);
    // One that has no document ends nobody, and looks at all. It prepares the same machine, so it comes after the neighbour.
    daemon = await RealDaemon.start(real, "account");
    await daemon.rig.launcher.watch(0, signal);
    for (let round = 1; ; round++) {
      for (const kind of kinds) if (round > 1 || !alone.has(kind)) alone.set(kind, await least(kind, ALONE));
      await bringUp(backEnd, [config]);
      const worse: string[] = [];
      try {
        await attack();
        for (const kind of kinds) {
          const ratio = (await least(kind, BESIDE, WORSE * alone.get(kind)!)) / alone.get(kind)!;
          if (ratio > WORSE) worse.push(`${kind} ${ratio.toFixed(2)}`);
        }
      } finally {
        await backEnd.destroy(config, AbortSignal.timeout(GONE));
      }
      if (worse.length === 0) return;
      if (round === ROUNDS) throw new Error(`beside the attack a neighbour needs so much more: ${worse}`);
    }
  } finally {
    await own.destroy(neighbour!, signal);
    await own.destroy(later!, signal);
    await daemon?.stop();
  }
}

/** Begins a script that attacks, and resolves when it has printed something. It ends with its sliver. */
export async function attackFrom(
  real: RealMachine,
  index: number,
  script: string,
  login?: string,
): Promise<void> {
  const child = begin(real, index, script, login);
  await once(child.stdout!, "data", { signal: AbortSignal.timeout(patient(45_000)) });
}
