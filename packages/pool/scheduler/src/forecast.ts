import type { Resources } from "@nodeyard/driver";
import { compareRequests } from "@nodeyard/model";
import { type Random, seededRandom } from "@nodeyard/runtime";
import type { NodeEntry } from "@nodeyard/view";
import { type Amounts, type Course, play, type Queued, type Return } from "./course.ts";
import { counted, total } from "./needs.ts";
import type { PoolState } from "./pool-state.ts";
import type { State } from "./state.ts";
import type { LocalPool, VerdictCode } from "./types.ts";
import { quotaOf, usedOfPool, usedOfProvider } from "./used.ts";
import { isNext } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/** How long things took lately, milliseconds, in no order; empty: not known. */
export interface Durations {
  /** From when a node of a label was given to its user until it was given back. */
  used(label: string): readonly number[];
  /** Launches of a label in a pool. */
  launched(pool: string, label: string): readonly number[];
  /** A node in use is given back after this many milliseconds at the latest. */
  leftOf(node: NodeEntry): number;
}

/** Why it cannot be said when a request gets its nodes. */
export const unknownReasons = {
  "no-launches": "too few launches of the label were seen lately",
  "no-uses": "it depends on how long users keep their nodes, and too few were given back lately to know that",
  uneven: "it depends on how long users keep their nodes, which differs too much",
  shared: "other pools wait for the same quota",
  held: "what it waits for is taken by nodes that are held",
  overdue: "it takes longer than nearly all launches that were seen lately",
  mixed: "it wants hosts of several labels, for each of which others wait",
  shares: "it depends on what others get and return whose share is smaller or larger",
  far: "too many requests wait before it",
  unforeseen: "nobody knows when what it waits for ends",
} as const;

/** A key of the table above, as it stands in answers to `explain` and in the API. */
export type UnknownReason = keyof typeof unknownReasons;

/** Equally likely times from now until a request has its nodes, milliseconds, the shortest first. */
export type Forecast = readonly number[] | UnknownReason;

/** Waiting that ends when those in front have what they want and users give nodes back. */
const FORESEEN: ReadonlySet<string> = new Set<VerdictCode>([
  "queue.next",
  "queue.behind",
  "queue.share",
  "queue.starting",
  "capacity.pool",
  "capacity.provider",
  "capacity.concurrency",
  "capacity.reserved",
  "nodes.none-free",
]);

/** With fewer durations nothing is said; those of users differ more than those of launches. */
const FEW = 3;
const FEW_USES = 10;
/** Courses that are played: fewer where a long queue makes each of them expensive, and none where that would hold up the launcher. */
const COURSES = 64;
const LEAST_COURSES = 8;
/** Queued requests and holders of all courses together, at most. */
const MOST_STEPS = 50_000;

interface Scene {
  readonly state: State;
  /** Tree time, milliseconds. */
  readonly now: number;
  readonly policy: LocalPool;
  readonly durations: Durations;
}

/** A scene, and the limit that its requests wait for. */
interface Limited extends Scene {
  /** By the names of `named`. */
  readonly limit: Resources;
  readonly used: Resources;
  /** The request that is asked about gets its room. */
  readonly begin: Queued["begin"];
}

/**
 * When a pool has served all that come before a request, and then the request. Courses of the pool are played with durations drawn from
 * those that were seen lately: each request in order begins as soon as there is room. Not foreseen are later requests of a
 * higher priority, and launches that fail. `code`: why it waits there. `made`: those of its labels that have to be launched.
 */
export function forecast(scene: Scene, waiting: Waiting, code: string, made: readonly string[]): Forecast {
  const { policy, durations } = scene;
  if (made.some((label) => durations.launched(policy.key, label).length < FEW)) return "no-launches";
  const begin: Queued["begin"] = (random, at) => ({ ready: at + launchOf(scene, made, random), returns: [] });
  if (code === "handling") return ofLaunches(scene, waiting, made);
  if (code === "pool.can") return playAll({ free: [], holders: [], queue: [{ need: [], pools: 1, begin }] });
  if (!FORESEEN.has(code)) return "unforeseen";
  if (scene.state.shares.on && !isNext(scene.state.pools.get(policy.key)!, waiting)) return "shares";
  return policy.launches ? ofCapacity(scene, waiting, begin) : ofHosts(scene, waiting, begin);
}

/** A pool that launches: its queue in order, with the limits of the pool, the quota and concurrent launches. */
function ofCapacity(scene: Scene, waiting: Waiting, begin: Queued["begin"]): Forecast {
  const { state, policy } = scene;
  const { provider } = policy;
  const pools = [...state.pools.values()];
  const rival = (pool: PoolState) =>
    pool.policy.provider === provider && pool.policy.key !== policy.key && pool.queue.size > 0;
  // Which of two queues gets the next part of a shared quota depends on both, and only one is played.
  if (Object.keys(quotaOf(state, policy)).length > 0 && pools.some(rival)) return "shared";
  const { queue } = pools.find((pool) => pool.policy === policy)!;
  const before = state.shares.on ? [] : earlier(queue, waiting);
  const most = state.policy.providers.get(provider)?.maxConcurrency ?? Number.POSITIVE_INFINITY;
  const nodes = [...state.nodes.values()].filter(({ record }) => record.provider === provider);
  const limit = {
    ...named("pool", policy.limits),
    ...named("quota", quotaOf(state, policy)),
    launching: most,
  };
  const used = {
    ...named("pool", usedOfPool(state, policy)),
    ...named("quota", usedOfProvider(state, provider)),
    launching: state.usage.of(`launching ${provider}`).instances ?? 0,
  };
  return ofUsers({ ...scene, limit, used, begin }, [...before, waiting], nodes);
}

/** Static hosts are not launched: a request waits until enough hosts of each label are free. */
function ofHosts(scene: Scene, waiting: Waiting, begin: Queued["begin"]): Forecast {
  const { state, policy } = scene;
  const [label, ...others] = new Set(waiting.record.nodeTypes);
  if (label === undefined || others.length > 0) return "mixed";
  const { inventory } = state.pools.get(policy.key)!;
  const line = [...state.requests.waiting()].filter(
    ({ id, record }) => inventory.has(id) && record.nodeTypes.includes(label),
  );
  const hosts = [...state.nodes.values()].filter(
    ({ record }) =>
      record.provider === policy.provider && record.pool === policy.name && record.type.includes(label),
  );
  const idle = hosts.filter(({ id }) => state.idle.has(id)).length;
  const limit = { [`host ${label}`]: hosts.length };
  const used = { [`host ${label}`]: hosts.length - idle };
  const before = earlier(line.sort(compareRequests), waiting);
  return ofUsers({ ...scene, limit, used, begin }, [...before, waiting], hosts);
}

/** It is being made: of the launches that were seen only those say anything that took longer than this one has. */
function ofLaunches(
  { state, now, policy, durations }: Scene,
  { id, record }: Waiting,
  made: readonly string[],
): Forecast {
  const since = state.requests.entry(id)?.record.stateTime ?? record.stateTime ?? 0;
  const elapsed = Math.max(0, now - since * 1_000);
  const each = [...new Set(made)].map((label) => durations.launched(policy.key, label));
  const rest = slowest(each).flatMap((ms) => (ms > elapsed ? [ms - elapsed] : []));
  if (made.length === 0) return [0];
  return rest.length < FEW ? "overdue" : sure(rest.sort((a, b) => a - b));
}

/** The durations of the label that takes longest on average: a nodeset is ready with its last node. */
function slowest(each: readonly (readonly number[])[]): readonly number[] {
  const mean = (values: readonly number[]) => values.reduce((sum, ms) => sum + ms, 0) / values.length;
  return each.reduce((slow, values) => (slow.length > 0 && mean(slow) >= mean(values) ? slow : values), []);
}

/** Also needs the durations of uses, because users hold the capacity. `line`: the requests before this one, then the request itself. */
function ofUsers(scene: Limited, line: readonly Waiting[], nodes: readonly NodeEntry[]): Forecast {
  const { durations, policy, limit, used } = scene;
  if ((line.length + nodes.length) * LEAST_COURSES > MOST_STEPS) return "far";
  const before = line.slice(0, -1).map(({ record }) => record.nodeTypes);
  const launches = policy.launches ? new Set(before.flat()) : [];
  for (const label of launches) if (durations.launched(policy.key, label).length < FEW) return "no-launches";
  const users = new Set([...before, ...nodes.map(({ record }) => record.type)].map(([label]) => label ?? ""));
  for (const label of users) if (durations.used(label).length < FEW_USES) return "no-uses";
  const queue = line.map((each) => queuedOf(scene, each));
  return playAll({
    free: limited(scene, limit).map((most, index) => most - limited(scene, used)[index]!),
    holders: nodes.map((node) => holderOf(scene, node)),
    queue: queue.with(-1, { ...queue.at(-1)!, begin: scene.begin }),
  });
}

/** Plays a course many times, each with other durations. */
function playAll(course: Course): Forecast {
  // The same question gets the same answer.
  const random = seededRandom(COURSES);
  const affordable = Math.floor(MOST_STEPS / (course.queue.length + course.holders.length));
  const count = Math.max(LEAST_COURSES, Math.min(COURSES, affordable));
  const times = Array.from({ length: count }, () => play(course, random)).sort((a, b) => a - b);
  return times.at(-1) === Number.POSITIVE_INFINITY ? "held" : sure(times);
}

/** An estimate needs 80 % of the played times within a factor of two of the median. Differences below a second do not count. */
function sure(times: readonly number[]): Forecast {
  const middle = times[times.length >> 1]!;
  const near = times.filter((ms) => ms <= 2 * middle + 1_000 && 2 * ms + 1_000 >= middle);
  return near.length >= 0.8 * times.length ? times : "uneven";
}

/** The requests of a line in order that come before this one. */
function earlier(line: Iterable<Waiting>, waiting: Waiting): Waiting[] {
  const found: Waiting[] = [];
  for (const each of line) {
    if (compareRequests(each, waiting) >= 0) break;
    found.push(each);
  }
  return found;
}

/** A request that comes before: all its nodes are given back together, as a job does. */
function queuedOf(scene: Limited, waiting: Waiting): Queued {
  const { state, policy, durations } = scene;
  const { nodeTypes } = waiting.record;
  const { launching = 0, ...kept } = needIn(scene, waiting);
  const [need, launched, given] = [{ ...kept, launching }, { launching }, kept].map((amount) =>
    limited(scene, amount),
  ) as [Amounts, Amounts, Amounts];
  return {
    need,
    pools: [...state.pools.values()].filter(
      ({ queue, inventory }) => queue.has(waiting) || inventory.has(waiting.id),
    ).length,
    begin: (random, at) => {
      const ready = at + (policy.launches ? launchOf(scene, nodeTypes, random) : 0);
      const returned = ready + pick(random, durations.used(nodeTypes[0] ?? ""));
      return {
        ready,
        returns: [
          { at: ready, amount: launched },
          { at: returned, amount: given },
        ],
      };
    },
  };
}

/** When the current users return their nodes, and what becomes free then. */
function holderOf(scene: Limited, node: NodeEntry): (random: Random) => readonly Return[] {
  const { now, policy, durations } = scene;
  const { state, stateTime, allocatedTo, type } = node.record;
  const label = type[0] ?? "";
  const elapsed = Math.max(0, now - (stateTime ?? 0) * 1_000);
  const made = state === "init" || state === "building";
  const uses = durations.used(label);
  const longer = uses.filter((ms) => ms > elapsed);
  const left = durations.leftOf(node);
  const amount = limited(scene, amountOf(scene, node));
  const launching = limited(scene, { launching: 1 });
  return (random) => {
    // Nobody knows when an operator releases it.
    if (state === "hold") return [{ at: Number.POSITIVE_INFINITY, amount }];
    if (state === "in-use") {
      // One that is kept for longer than any that was seen may be kept for as long again.
      const rest = longer.length === 0 ? 2 * random.float() * elapsed : pick(random, longer) - elapsed;
      return [{ at: Math.min(rest, left), amount }];
    }
    const launch = made ? Math.max(0, pick(random, durations.launched(policy.key, label)) - elapsed) : 0;
    // It is on its way to a user, who will keep it as others do.
    const given = allocatedTo !== null && (made || state === "ready");
    const returned = { at: launch + (given ? pick(random, uses) : 0), amount };
    return made ? [{ at: launch, amount: launching }, returned] : [returned];
  };
}

/** What a request takes in its pool. */
function needIn({ state, policy }: Scene, { record: { nodeTypes } }: Waiting): Resources {
  const amount = total(policy, nodeTypes);
  const most = state.policy.providers.get(policy.provider)?.maxConcurrency ?? Number.POSITIVE_INFINITY;
  return {
    ...named("pool", amount),
    ...named("quota", amount),
    ...named("host", Object.fromEntries(counted(nodeTypes))),
    launching: policy.launches ? Math.min(nodeTypes.length, most) : 0,
  };
}

/** What becomes free of each limit when the node goes. */
function amountOf({ state, policy }: Scene, { id, record: { pool, type } }: NodeEntry): Resources {
  const amount = state.usage.held(id);
  return {
    ...(pool === policy.name ? named("pool", amount) : {}),
    ...named("quota", amount),
    ...named("host", Object.fromEntries(counted(type))),
  };
}

/** Of the amounts those that are limited, in the order of the limits. */
function limited({ limit }: Limited, amounts: Resources): Amounts {
  return Object.keys(limit).map((name) => amounts[name] ?? 0);
}

/** One set of names for amounts of several limits. */
function named(of: "pool" | "quota" | "host", amounts: Resources): Resources {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [`${of} ${name}`, amount]));
}

/** A drawn duration of launching all these labels at once: the longest of them. */
function launchOf({ policy, durations }: Scene, labels: readonly string[], random: Random): number {
  return Math.max(0, ...labels.map((label) => pick(random, durations.launched(policy.key, label))));
}

function pick(random: Random, values: readonly number[]): number {
  return values[Math.floor(random.float() * values.length)] ?? 0;
}
