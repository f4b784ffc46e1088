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
const ALONE = 5;
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

/**
 * Resolves when the attack is at its worst. `over` aborts before the attacker ends, and work that was given to `goesOn` settles before, too.
 */
type Begin = (over: AbortSignal, goesOn: (work: Promise<unknown>) => void) => Promise<unknown>;

export interface Attack {
  readonly config: SliverConfig;
  /** As of `notWorse`. */
  readonly attack: Begin;
  /** Kinds that it may make worse, as docs/how-to/harden.md says. */
  readonly but?: readonly Kind[];
}

/** What neighbours needed alone, as measured last. */
const undisturbed = new WeakMap<RealMachine, Map<Kind, number>>();

/**
 * Attacks until no measure is worse by a quarter than alone, at most three times. Of each the least disturbed measurement counts: what else
 * runs on the machine only takes, while what an attack takes lacks in every one. Before another round all is measured alone anew, because a
 * machine that has become slower since would count against the attack. `alone`: what was measured before, which is kept there. `end`
 * resolves when nothing of the attack is left.
 */
export async function notWorse<K>(
  measures: readonly (readonly [K, () => Promise<number>])[],
  alone: Map<K, number>,
  attack: Begin,
  end: () => Promise<unknown>,
): Promise<void> {
  /** None more when one is small enough. */
  const least = async (measure: () => Promise<number>, times: number, enough = 0) => {
    let best = Number.POSITIVE_INFINITY;
    for (let at = 0; at < times && best > enough; at++) best = Math.min(best, await measure());
    return best;
  };
  for (let round = 1; ; round++) {
    for (const [kind, measure] of measures)
      if (round > 1 || !alone.has(kind)) alone.set(kind, await least(measure, ALONE));
    const worse: string[] = [];
    const over = new AbortController();
    const rest: Promise<unknown>[] = [];
    try {
      await attack(over.signal, (work) => {
        work.catch(() => undefined);
        rest.push(work);
      });
      for (const [kind, measure] of measures) {
        const ratio = (await least(measure, BESIDE, WORSE * alone.get(kind)!)) / alone.get(kind)!;
        console.error(`${kind} ${ratio.toFixed(2)} of ${alone.get(kind)!.toFixed(0)}`);
        if (ratio > WORSE) worse.push(`${kind} ${ratio.toFixed(2)}`);
      }
    } finally {
      over.abort();
      await Promise.allSettled(rest);
      await end();
    }
    if (worse.length === 0) return;
    if (round === ROUNDS) throw new Error(`beside the attack a neighbour needs so much more: ${worse}`);
  }
}

/**
 * Attacks, each time from a new sliver that must be gone half a minute after its end, until nothing of a neighbour's is worse by a quarter than
 * alone. `backEnd`: of the attacker.
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
  const alone = undisturbed.get(real) ?? new Map<Kind, number>();
  undisturbed.set(real, alone);
  let daemon: RealDaemon | undefined;
  try {
    await bringUp(own, [neighbour!]);
    // One that has no document ends nobody, and looks at all. It prepares the same machine, so it comes after the neighbour.
    daemon = await RealDaemon.start(real, "account");
    await daemon.rig.launcher.watch(0, signal);
    await notWorse(
      kinds.map((kind) => [kind, measures[kind]]),
      alone,
      async (...over) => {
        await bringUp(backEnd, [config]);
        await attack(...over);
      },
      () => backEnd.destroy(config, AbortSignal.timeout(GONE)),
    );
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
