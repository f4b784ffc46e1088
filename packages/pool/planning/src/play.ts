import type { Driver } from "@nodeyard/driver";
import { Launcher, type LauncherConfig } from "@nodeyard/launcher";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { Counters } from "@nodeyard/telemetry";
import { createMemoryTree } from "@nodeyard/tree";
import type { Demand } from "./demand.ts";
import { Experience } from "./experience.ts";
import { Hours, type HoursFigures } from "./hours.ts";
import { type Peak, Peaks } from "./peaks.ts";
import { playedDriver } from "./played-driver.ts";
import { type Outcome, PlayedUser, writeImages } from "./played-user.ts";

/** For min-ready nodes and static hosts before the first request comes, milliseconds. */
const BEFORE_MS = 3_600_000;
/** The steps by which virtual time advances after the last request, milliseconds. */
const STEP_MS = 600_000;
/** Without a served request for this long plus the longest use, the remaining requests count as unanswered, milliseconds. */
const PATIENCE_MS = 86_400_000;

const ignore = () => {};
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** What `play` is given: a configuration, the requests of a time that is past, and a seed for durations. */
export interface PlayOptions {
  readonly config: LauncherConfig;
  readonly demand: Demand;
  readonly seed: number;
  /** The driver that is installed; undefined: none is. */
  readonly driverOf: (name: string) => Driver | undefined;
  /** Called at each request, with the part of them that has come, from 0 to 1. */
  readonly onProgress?: (part: number) => void;
}

/** The result of a demand under a configuration. */
export interface Played {
  /** By request, as the demand names them; `@` and its time. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly peaks: readonly Peak[];
  readonly hours: readonly HoursFigures[];
  /** Sentences about facts that were not recorded, and what was assumed instead. */
  readonly assumed: readonly string[];
}

/**
 * Plays demand on a launcher of its own: the same code as in production, on a tree in memory, under a clock that jumps from event to
 * event. Nothing outside is contacted. The same options give the same result. Rejects when the launcher cannot be started, or the
 * played user could not go on; figures are given for a whole run only.
 */
export async function play({ config, demand, seed, driverOf, onProgress }: PlayOptions): Promise<Played> {
  const { requests } = demand;
  const experience = new Experience(demand, seed);
  const first = (requests[0]?.at ?? 0) * 1000;
  const clock = new VirtualClock(first - BEFORE_MS);
  const cluster = createMemoryTree({ clock, random: seededRandom(seed), keepLog: false });
  // A connection of its own: its writes reach the launcher as those of another process do.
  const user = new PlayedUser(cluster.connect({ name: "user" }), clock, seededRandom(seed + 1));
  await user.prepare();
  // Before the launcher starts, or requests would wait for images that nobody builds.
  await writeImages(user.tree, config.providers, clock.now() / 1000);
  const launcher = await startLauncher({
    tree: cluster.connect({ name: "launcher" }),
    clock,
    random: seededRandom(seed + 2),
    // Every machine answers at once: its boot is part of the recorded launch.
    scan: { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: [] }) },
    // Each node that is given back is found good, at once.
    check: async () => undefined,
    log: SILENT,
    journal: { write: ignore },
    counters: new Counters(),
    identity: { hostname: "plan", fqdn: "plan", version: "0" },
    driverOf: async (name) => playedDriver(name, driverOf(name), experience),
    config,
  });
  const peaks = new Peaks((provider, label) => experience.needOf(provider, label) ?? {});
  const hours = new Hours(() => clock.monotonic());
  launcher.view.onEvent((event) => {
    if (event.type === "node") {
      peaks.onNode(event);
      hours.onNode(event);
    }
    if (event.type === "request") user.onRequest(event.id, event.after?.record);
  });
  await clock.advance(first - clock.now());
  let longest = 0;
  for (const [index, request] of requests.entries()) {
    await clock.advance(request.at * 1000 - clock.now());
    const useMs = experience.useMs(request);
    longest = Math.max(longest, useMs);
    user.ask(request, useMs);
    onProgress?.(index / requests.length);
  }
  // Ends when all are answered, or when nothing moves any more although each node in use has been given back.
  for (let idle = 0; user.waiting > 0 && idle <= longest + PATIENCE_MS; idle += STEP_MS) {
    const before = user.waiting;
    await clock.advance(STEP_MS);
    if (user.waiting < before) idle = 0;
  }
  user.assertSound();
  const assumed = [...experience.assumed].sort();
  return { outcomes: user.outcomes(), peaks: peaks.list(), hours: hours.list(), assumed };

  async function startLauncher(options: Parameters<typeof Launcher.start>[0]): Promise<Launcher> {
    let started: Launcher | undefined;
    const starting = Launcher.start(options).then((it) => {
      started = it;
    });
    // Providers open and hosts are probed in virtual time.
    for (let ms = 0; started === undefined && ms < BEFORE_MS; ms += 100)
      await Promise.race([clock.advance(100), starting]);
    await starting;
    return started!;
  }
}
