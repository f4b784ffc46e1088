import type { ProviderConfig } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { type Random, seededRandom, sleep } from "@nodeyard/runtime";
import { createMemoryTree } from "@nodeyard/tree";
import { Requestor } from "../../simulation/requestor.ts";
import type { CloudRig } from "../cloud-rig.ts";
import { CrowdLauncher, type LauncherPlace } from "./launcher.ts";

/** What a double says of itself, without a call of its API. */
export interface CrowdCloud {
  /** Machines that there are now. Two with one node are one too many. */
  machines(): readonly { readonly id: string; readonly node: string | undefined }[];
  /** What nodes have left behind: machines and what stood beside them. */
  left(): readonly string[];
  /** Calls so far, each by what it was for. */
  calls(): readonly CallKind[];
  /** From now on some answers of calls that make machines are lost. */
  loseAnswers(): void;
}

/**
 * launch and removal: a call about one machine; list: all others, which those who wait share; full: a place or quota had no room, and nothing
 * was made; throttled: there were too many calls, and nothing was done.
 */
export type CallKind = "launch" | "removal" | "list" | "full" | "throttled";

/** What happens. All requests are made at once, for one node of the label `small` each. */
export interface CrowdPlan {
  readonly requests: number;
  readonly launchers: number;
  /** When these shares of the machines were made a launcher is killed, each time the oldest, and another one starts. */
  readonly kills: readonly number[];
}

/** What became of it. */
export interface CrowdFigures {
  /** Requests by how they ended. */
  readonly ended: Readonly<Record<string, number>>;
  /** Nodes that launchers began to make. Some have no machine: their launcher was killed before. */
  readonly nodes: number;
  readonly machines: number;
  /** Nodes that had two machines at one moment. */
  readonly doubled: readonly string[];
  readonly mostAtOnce: number;
  readonly left: readonly string[];
  readonly calls: Readonly<Record<CallKind, number>>;
  /** Calls for each machine that was made, for each node that was removed, and lists for each of both. */
  readonly each: Readonly<Record<"launch" | "removal" | "list", number>>;
  /** Virtual seconds. */
  readonly seconds: number;
}

const LOOK_MS = 250;
/** All requests are served, and nothing is left, by this virtual time, milliseconds. */
const END_MS = 7_200_000;
/** Clients that neither cancel, die, hold nor delay: the middle of every chance. */
const PLAIN = { float: () => 0.5 } as Random;

/**
 * A crowd of requests for real launchers on one tree, whose driver calls a cloud's double, in virtual time. Launchers are killed and answers
 * are lost in the middle.
 */
export async function crowd<Config extends ProviderConfig>(
  rig: CloudRig<Config>,
  config: Config,
  cloud: CrowdCloud,
  { requests, launchers: count, kills }: CrowdPlan,
): Promise<CrowdFigures> {
  const { clock } = rig;
  const cluster = createMemoryTree({ clock, random: seededRandom(1), latencyMs: [1, 5] });
  const tree = cluster.connect({ name: "zuul", sessionTimeoutMs: 600_000 });
  const client = { clock, random: PLAIN, long: PLAIN, executor: () => tree };
  const zuul = new Requestor({ tree, ...client, touched: () => false, onDeath: () => {} });
  const place: LauncherPlace = { clock, cluster, config, driver: (through) => rig.driver(through) };
  let started = 0;
  const start = async () => {
    const launcher = new CrowdLauncher(`launcher-${started}`, ++started, place);
    await launcher.started();
    return launcher;
  };
  const made = new Set<string>();
  const doubled = new Set<string>();
  let mostAtOnce = 0;
  const look = () => {
    const machines = cloud.machines();
    mostAtOnce = Math.max(mostAtOnce, machines.length);
    for (const { id } of machines) made.add(id);
    for (const [node, own] of Map.groupBy(machines, ({ node }) => node))
      if (node !== undefined && own.length > 1) doubled.add(node);
  };
  const run = async () => {
    for (const path of ["/nodepool", paths.requests]) await tree.create(path);
    const launchers: CrowdLauncher[] = [];
    for (let number = 0; number < count; number++) launchers.push(await start());
    const served = { all: false };
    const jobs = Promise.all(Array.from({ length: requests }, () => zuul.live(["small"]))).then(() => {
      served.all = true;
    });
    const waiting = [...kills];
    while (!served.all || cloud.left().length > 0) {
      if (clock.monotonic() > END_MS) break;
      await Promise.race([jobs, sleep(clock, LOOK_MS)]);
      await sleep(clock, LOOK_MS);
      look();
      if (made.size < (waiting[0] ?? Number.POSITIVE_INFINITY) * requests) continue;
      waiting.shift();
      launchers.shift()?.kill();
      cloud.loseAnswers();
      launchers.push(await start());
    }
    for (const launcher of launchers) await launcher.close();
  };
  await rig.drive(run());
  const nodes = cluster.log.flatMap(({ ops }) => ops.filter(isNewNode)).length;
  const calls = { launch: 0, removal: 0, list: 0, full: 0, throttled: 0, ...countBy(cloud.calls()) };
  return {
    ended: countBy(zuul.outcomes.map(({ result }) => result)),
    ...{ nodes, machines: made.size, doubled: [...doubled], mostAtOnce, left: cloud.left(), calls },
    each: {
      launch: calls.launch / made.size,
      removal: calls.removal / nodes,
      list: calls.list / (made.size + nodes),
    },
    seconds: Math.round(clock.monotonic() / 1_000),
  };
}

const isNewNode = ({ op, path }: { readonly op: string; readonly path: string }) =>
  op === "create" && /^\/nodepool\/nodes\/\d*$/.test(path);

function countBy(all: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(all, (one) => one)].map(([one, of]) => [one, of.length]));
}
