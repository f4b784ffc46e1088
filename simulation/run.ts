import { checkImages, imagesWithoutRecord, readyBuilds } from "./builder/index.ts";
import { burst } from "./burst.ts";
import { Broken } from "./checks/index.ts";
import type { Coverage } from "./coverage.ts";
import { checkEnd, checkVerdicts, describe } from "./end.ts";
import { FaultSchedule } from "./fault-schedule.ts";
import { makeScene, prepare } from "./make-scene.ts";
import { PythonLauncher } from "./python.ts";
import { isQuiet, isSettled } from "./quiet.ts";
import type { Outcome } from "./requestor.ts";
import { retried } from "./retried.ts";
import type { Scene } from "./scene.ts";
import { ONE_POOL, VARIANTS, WANTED } from "./setting.ts";
import { sightingsOf } from "./sightings.ts";
import { simulateSliverHost } from "./sliver-host/index.ts";
import { between, pick } from "./streams.ts";

export interface SimulationOptions {
  readonly seed: number;
  /** Requests in all. */
  readonly requests?: number;
  /** Faults of the deck in all; calls and events are lost in addition. */
  readonly faults?: number;
  /** Called with each write, and the latest virtual time at which it was made, milliseconds. */
  readonly onWrite?: (write: Scene["cluster"]["log"][number], at: number) => void;
  readonly onFault?: (at: number, fault: string) => void;
}

export interface SimulationResult {
  readonly seed: number;
  /** Virtual milliseconds. */
  readonly took: number;
  readonly writes: number;
  readonly launchers: number;
  readonly outcomes: Readonly<Record<Outcome["result"], number>>;
  /** Leases that were granted. */
  readonly leases: number;
  /** Ended requests and leases, however they ended. */
  readonly ended: number;
  readonly coverage: Coverage;
}

const LAUNCHERS = 3;
/** Before the other launchers start, virtual milliseconds. */
const ALONE_MS = 10_000;
/** One seed of this many begins with a single pool, whose decline is everybody's. */
const ONE_POOL_IN = 4;
/** One seed of this many has a cloud that deletes nothing for a long time. */
const DELETES_NOTHING = 8;
/** One seed of this many has a burst of requests for one pool. */
const BURST_IN = 4;
/** Faults continue for at least this long, virtual milliseconds; quiet lasts another 200 s. */
const STORM_MS = 105_000;
/** Nothing may take longer than this after the faults, virtual milliseconds. */
const PATIENCE_MS = 3_600_000;
/** Two sweeps and more: leaks are found and deleted by then. */
const QUIET_MS = 200_000;
/** A cloud's images are listed every five minutes; one that two lists in a row show without a record is deleted. */
const IMAGE_LEAKS_MS = 700_000;
/** A launch in a cloud without faults, virtual milliseconds. */
const REPLACED_MS = 30_000;

/** One run: throws `Broken` when a rule does not hold. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { requests = 50, faults = 18 } = options;
  const failures: unknown[] = [];
  const scene = makeScene(options, (error) => failures.push(error));
  const { clock, check, cluster, zuul, cli } = scene;
  let checked = 0;
  const advance = async (ms: number) => {
    await clock.advance(ms);
    for (; checked < cluster.log.length; checked++) {
      takeEffects(scene, checked);
      const write = cluster.log[checked]!;
      options.onWrite?.(write, clock.monotonic());
      // Jumps happen between two steps, never within one.
      check.take(write, write.at - scene.jumped);
      scene.images.take(write, write.at - scene.jumped);
      note(scene, write);
    }
    takeEffects(scene, checked);
    checkVerdicts(scene);
    if (failures.length > 0) throw failures[0];
  };
  await simulateSliverHost({
    seed: options.seed,
    random: scene.stream("sliver host"),
    count: scene.count,
  });
  await prepare(scene);
  if (options.seed % 2 === 0) startPython(scene, failures);
  const schedule = new FaultSchedule(scene);
  if (options.seed % ONE_POOL_IN === 1) scene.config = ONE_POOL;
  schedule.start();
  // At first the pool is alone, and the only one that can decline.
  zuul.live(["doomed"]).catch((error) => failures.push(error));
  await advance(ALONE_MS);
  schedule.reload(VARIANTS[0]!);
  schedule.trapRare();
  scene.builders.run().catch((error) => failures.push(error));
  for (let number = 1; number < LAUNCHERS; number++) schedule.start();
  const random = scene.stream("course");
  if (options.seed % DELETES_NOTHING === 0) schedule.deleteNothing();
  for (let asked = 0, done = 0; asked < requests || done < faults || clock.monotonic() < STORM_MS; ) {
    // Requests come in bursts; in between only slow work continues.
    await advance(random.float() < 0.03 ? between(random, 5_000, 20_000) : between(random, 0, 400));
    if (asked < requests && random.float() < 0.7) {
      asked++;
      ask(scene).catch((error) => failures.push(error));
    }
    if (done < faults && random.float() < 0.25) {
      done++;
      schedule.happen();
    }
  }
  scene.troubled = false;
  schedule.end();
  scene.builders.stop();
  check.calm();
  const began = clock.monotonic();
  let bursting = options.seed % BURST_IN === 3;
  if (bursting)
    burst(scene)
      .catch((error) => failures.push(error))
      .finally(() => {
        bursting = false;
      });
  while (bursting || !isQuiet(scene)) {
    if (clock.monotonic() - began > PATIENCE_MS)
      throw new Broken("every request ends", undefined, describe(scene));
    await advance(1_000);
  }
  const lines = scene.processes.map(({ log }) => log.lines.length);
  await advance(QUIET_MS);
  // An idle node may have reached its maximum age just now, and be locked or replaced.
  for (let waited = 0; !isSettled(scene) && waited < REPLACED_MS; waited += 1_000) await advance(1_000);
  checkEnd(scene, lines);
  // Builds that failed in a row are tried again after a pause that may be longer than all that was waited for.
  for (let waited = 0; readyBuilds(scene.images).length === 0 && waited < PATIENCE_MS; waited += 10_000)
    await advance(10_000);
  for (let waited = 0; imagesWithoutRecord(scene).length > 0 && waited < IMAGE_LEAKS_MS; waited += 10_000)
    await advance(10_000);
  checkImages(scene);
  const of = (result: Outcome["result"]) =>
    zuul.outcomes.filter((outcome) => outcome.result === result).length;
  return {
    seed: options.seed,
    took: Math.round(clock.monotonic()),
    writes: cluster.log.length,
    launchers: scene.processes.length,
    outcomes: {
      used: of("used"),
      failed: of("failed"),
      cancelled: of("cancelled"),
      spoiled: of("spoiled"),
      died: of("died"),
    },
    leases: cli.granted,
    ended: zuul.outcomes.length + cli.ended,
    coverage: scene.coverage,
  };
}

/** Calls of the clouds that were carried out when the tree had this many writes, or before. */
function takeEffects({ effects, check }: Scene, writes: number): void {
  while (effects.length > 0 && effects[0]!.writes <= writes) check.takeEffect(effects.shift()!.effect);
}

/** Passes a write to the parts of the run that need it. */
function note(scene: Scene, write: Scene["cluster"]["log"][number]): void {
  for (const sighting of sightingsOf(write)) scene.see(sighting);
  for (const { op, path } of write.ops) {
    const node = op === "create" ? /^\/nodeyard\/dead-letters\/(\d+)$/.exec(path)?.[1] : undefined;
    if (node !== undefined) scene.operator.read(node);
  }
}

function startPython(scene: Scene, failures: unknown[]): void {
  scene.count("python launcher");
  const tree = scene.cluster.connect({ name: "python", sessionTimeoutMs: 600_000, latencyMs: [0, 3] });
  const random = scene.stream("python");
  const python = new PythonLauncher(retried(tree, scene.clock, random), scene.clock, random);
  python.run().catch((error) => failures.push(error));
}

/** In what the nodes of a mixed set are to agree. */
const RULES = [[], [], ["provider"], ["executor"], ["zone"]] as const;

/** Labels of several pools cannot come from one: most nodesets have one label, or two of the same pool. */
function ask({ stream, zuul, cli, asked }: Scene): Promise<void> {
  const random = stream(`request ${asked.count++}`);
  const labels = Array.from({ length: 1 + Math.floor(random.float() * 3) }, () => pick(random, WANTED));
  if (random.float() < 0.25) {
    const sets = stream(`set ${asked.count}`);
    if (sets.float() < 0.6) return cli.live([labels[0]!]);
    const same = RULES[Math.floor(sets.float() * RULES.length)]!;
    return cli.live(
      [labels[0]!, ...labels, pick(sets, WANTED)],
      same.map((fact) => ({ fact, labels: [] })),
    );
  }
  const mixed = random.float() < 0.15 || labels.every((label) => label === "small" || label === "large");
  return zuul.live(mixed ? labels : labels.map(() => labels[0]!));
}
