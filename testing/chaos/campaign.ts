import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "@nodeyard/model";
import { type Random, seededRandom } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import { patient } from "../patience.ts";
import { LAST_WORDS } from "./inside/trigger.ts";
import { Load } from "./load.ts";
import { until } from "./patience.ts";
import { killPlan } from "./plan.ts";
import { openSite, type Site, type StoreName } from "./site.ts";
import { checkCloud, checkLog, excerpt, ledgerSums, leftovers } from "./verdict.ts";
import type { KillPoint, Victim } from "./victim.ts";

export interface CampaignOptions {
  readonly store: StoreName;
  readonly kills: number;
  readonly seed: number;
  /** Called at each death. */
  readonly onKill?: (what: string) => void;
}

export interface CampaignResult {
  readonly kills: number;
  /** Kills at a named effect. */
  readonly atEffects: number;
  /** Leaders of the ensemble that were killed. */
  readonly leaders: number;
  readonly used: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly leases: number;
  readonly writes: number;
  readonly machines: number;
}

/** If a point of the plan is not reached in this time after the process serves, the process is killed from outside. */
const REACH_MS = 8_000;
/** Time for a process to start on a busy machine. */
const START_MS = patient(120_000);
const CLEAN_MS = 60_000;
/** Time for a launcher to start, to take over from the one before, and to have a launch and a delete in flight. */
const BOTH_MS = 60_000;
/** After this many kills of launchers, the leader of the tree is killed too, if there is one. */
const LEADER_EVERY = 3;
/** A failure shows the logs of this many launchers, and this many characters of each. */
const LOGS_SHOWN = 4;
const LOG_SHOWN = 2_000;

/** Kills launchers while requests arrive, then checks the history of tree and cloud. Throws when a rule is broken. */
export async function campaign(options: CampaignOptions): Promise<CampaignResult> {
  const { store, kills, seed } = options;
  const random = seededRandom(seed);
  const site = await openSite(store);
  const victims: Victim[] = [];
  const events: string[] = [];
  const note = (what: string) => void events.push(`  ${new Date().toISOString().slice(11, 23)} ${what}`);
  const onKill = (what: string) => {
    note(what);
    options.onKill?.(what);
  };
  const start = (point: KillPoint | undefined) => {
    const victim = site.start(point);
    const number = victims.push(victim);
    note(`launcher ${number} started`);
    void victim.printed(site.ready).then((up) => up && note(`launcher ${number} serves`));
    return victim;
  };
  try {
    const plan = killPlan(kills, random);
    let launcher = start(plan[0]);
    if (!(await launcher.printed(site.ready))) throw new Error(launcher.errors);
    const tree = await site.connect();
    const load = new Load(tree, seededRandom(seed + 1));
    const watch = new InFlight(tree, load);
    let [atEffects, leaders] = [0, 0];
    for (const [index, point] of plan.entries()) {
      if (index % LEADER_EVERY === LEADER_EVERY - 1 && site.killLeader !== undefined) {
        onKill(await site.killLeader());
        leaders++;
      }
      const how = await die(site, launcher, point, watch, random);
      if (how === "effect") atEffects++;
      if (load.complaints.length > 0) throw load.complaints[0];
      onKill(
        `${index + 1}/${kills} ${point === undefined ? "outside" : `${point.effect} ${point.moment}`}: ${how}`,
      );
      site.buried();
      launcher = start(plan[index + 1]);
    }
    await load.stop();
    if (load.complaints.length > 0) throw load.complaints[0];
    await until(
      async () => (await leftovers(tree)).length === 0,
      CLEAN_MS,
      async () => (await leftovers(tree)).join(", "),
    );
    const result = await judge(site, tree, load);
    await watch.close();
    await tree.close();
    return { kills, atEffects, leaders, ...result };
  } catch (error) {
    note(`an fsync takes ${Math.round(fsyncMs(`${site.cloud}.probe`))} ms`);
    const reported = [(error as Error).message, history(site, error), "events:", ...events, logsOf(victims)];
    throw new Error(`seed ${seed}, ${store}: ${reported.join("\n")}`, { cause: error });
  } finally {
    await victims.at(-1)?.signal("SIGKILL");
    await site.close();
  }
}

/** Waits until the process kills itself at `point`, or kills it from outside. */
async function die(
  site: Site,
  launcher: Victim,
  point: KillPoint | undefined,
  watch: InFlight,
  random: Random,
): Promise<"effect" | "outside"> {
  // Its point may be in its start. If every process were killed before it serves, no client would be served.
  const up = await within(START_MS, launcher.printed(site.ready));
  if (up === undefined) throw new Error(`the launcher did not come up within ${START_MS} ms`);
  if (point !== undefined) {
    await within(REACH_MS, launcher.ended);
    if (launcher.dead) {
      // The end of its output may not have been read yet.
      await launcher.ended;
      if (launcher.errors.includes(LAST_WORDS)) return "effect";
      throw new Error(`the launcher ended by itself with ${launcher.exitCode}`);
    }
  } else {
    if (!up) throw new Error("the launcher ended by itself");
    await sleep(random.float() * 1_000);
  }
  await until(
    () => watch.both,
    BOTH_MS,
    () => watch.describe(),
  );
  await launcher.signal("SIGKILL");
  return "outside";
}

/** What `work` resolves with; undefined when it takes longer. */
async function within<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
  const patience = new AbortController();
  const late = sleep(limitMs, undefined, { signal: patience.signal }).catch(() => undefined);
  const first = await Promise.race([work, late]);
  patience.abort();
  return first;
}

async function judge(site: Site, tree: Tree, load: Load) {
  const writes = site.log();
  const check = checkLog(writes);
  if (check.nodes.size + check.requests.size > 0)
    throw new Error(
      `the log ends with nodes ${[...check.nodes.keys()]} and requests ${[...check.requests.keys()]}`,
    );
  const alive = checkCloud(site.cloud);
  if (alive.size > 0)
    throw new Error(
      `machines outlive their records: ${[...alive].map(([id, node]) => `${id} of node ${node}`).join(", ")}`,
    );
  await until(
    async () => (await ledgerSums(tree)).length === 0,
    1_000,
    async () => `ledgers: ${await ledgerSums(tree)}`,
  );
  const of = (result: string) => load.zuul.ended.filter((asked) => asked.result === result).length;
  const machines = writes
    .flatMap(({ ops }) => ops)
    .filter((op) => op.op === "create" && /^\/nodepool\/nodes\/\d{10}$/.test(op.path)).length;
  return {
    used: of("used"),
    failed: of("failed"),
    cancelled: of("cancelled"),
    leases: load.leases,
    writes: writes.length,
    machines,
  };
}

/** How long the disk takes, on which a tree may wait. */
function fsyncMs(path: string): number {
  const began = performance.now();
  const file = openSync(path, "w");
  writeSync(file, "a probe");
  fsyncSync(file);
  closeSync(file);
  return performance.now() - began;
}

/** Logs of the last launchers; an empty one means that the launcher did not start. */
function logsOf(victims: readonly Victim[]): string {
  return victims
    .map(({ errors }, index) => `launcher ${index + 1}:\n${errors.slice(-LOG_SHOWN) || "(nothing)"}`)
    .slice(-LOGS_SHOWN)
    .join("\n");
}

/** What was done to the record that the error names, and what was done last of all. */
function history(site: Site, error: unknown): string {
  const id = /\d{10}/.exec((error as Error).message)?.[0];
  try {
    const writes = site.log();
    const last = id === undefined ? [] : ["the last writes of all:", ...excerpt(writes, undefined, 10)];
    return [...excerpt(writes, id), ...last].join("\n");
  } catch {
    return "(no history)";
  }
}

/** What is being launched and deleted, by the records. */
class InFlight {
  readonly #states = new Map<string, unknown>();
  readonly #load: Load;
  readonly #feed;

  constructor(tree: Tree, load: Load) {
    this.#load = load;
    this.#feed = tree.feed(paths.nodes, {
      interest: (path) => (/^\/nodepool\/nodes\/\d{10}$/.test(path) ? "data" : "none"),
      onChange: (change) => {
        if (change.type === "remove") this.#states.delete(change.path);
        else if (change.type === "put" && change.data !== undefined && change.data.length > 0)
          this.#states.set(
            change.path,
            (JSON.parse(Buffer.from(change.data).toString()) as { state: unknown }).state,
          );
      },
    });
    this.#feed.synced.catch(() => {});
  }

  /** Throws the first error of a client: a client that has stopped makes no more requests. */
  get both(): boolean {
    if (this.#load.complaints.length > 0) throw this.#load.complaints[0];
    const states = [...this.#states.values()];
    return states.includes("building") && states.includes("deleting");
  }

  describe(): string {
    return `no launch and delete in flight together: ${[...this.#states].map((entry) => entry.join(" ")).join(", ")}`;
  }

  close(): Promise<void> {
    return this.#feed.close();
  }
}
