import { LEASES, paths } from "@nodeyard/model";
import type { Command } from "commander";
import { age, renderTable } from "../../listing/index.ts";
import {
  listLeases,
  listNodes,
  listRequests,
  type OperationHandles,
  registeredPools,
  treeNow,
} from "../../operations/index.ts";
import { printJson } from "../listing.ts";
import { type Session, withTree } from "../session.ts";
import { watching } from "../watching.ts";

interface TopOptions {
  readonly once?: boolean;
  readonly json?: boolean;
}

export function defineTop(command: Command, session: Session): void {
  command
    .option("--once", "print it once")
    .option("--json", "an object on stdout: providers, requests, leases; ages are seconds")
    .action(({ once, json }: TopOptions) =>
      withTree(session, (handles) => {
        const { io } = session;
        const clear = once !== true && io.isTerminal ? "\u001b[H\u001b[2J" : "";
        const print = async () => {
          const all = await overview(handles);
          if (json === true) printJson(io, all);
          else io.out(`${clear}${textOf(all)}`);
        };
        if (once === true) return print();
        return watching(session, handles, [paths.nodes, paths.requests, LEASES], print);
      }),
    );
}

/** Numbers of what there is, by state. */
type Counts = Readonly<Record<string, number>>;

interface Overview {
  /** Nodes by provider; those that a launcher serves have no nodes at times. */
  readonly providers: Readonly<Record<string, Counts>>;
  readonly requests: Counts;
  /** Of the oldest request that no pool has taken, seconds. */
  readonly oldest_age: number | null;
  readonly leases: Counts;
}

async function overview(handles: OperationHandles): Promise<Overview> {
  const [pools, nodes, requests, leases] = await Promise.all([
    registeredPools(handles.tree),
    listNodes(handles),
    listRequests(handles),
    listLeases(handles),
  ]);
  const names = new Set([
    ...pools.map(({ providerName }) => providerName),
    ...nodes.items.map(({ record }) => record.provider),
  ]);
  const sorted = [...names].filter((name) => name !== null).sort();
  const of = (name: string) => nodes.items.filter(({ record }) => record.provider === name);
  const waiting = requests.items.filter(({ state }) => state === "requested");
  const times = waiting.map(({ createdTime, stateTime }) => createdTime ?? stateTime ?? 0);
  return {
    providers: Object.fromEntries(sorted.map((name) => [name, counts(of(name).map(({ record }) => record))])),
    requests: counts(requests.items),
    oldest_age:
      times.length === 0 ? null : Math.max(0, Math.floor(treeNow(handles) / 1000 - Math.min(...times))),
    leases: counts(leases.items),
  };
}

function counts(items: readonly { readonly state: string }[]): Counts {
  const found: Record<string, number> = {};
  for (const { state } of items) found[state] = (found[state] ?? 0) + 1;
  return found;
}

/** Columns of a node's life; other states are in the total. */
const STATES = ["building", "ready", "in-use", "used", "hold", "deleting", "failed"];

function textOf({ providers, requests, oldest_age: oldest, leases }: Overview): string {
  const rows = Object.entries(providers).map(([name, states]) => [
    name,
    ...STATES.map((state) => states[state] ?? 0),
    Object.values(states).reduce((sum, count) => sum + count, 0),
  ]);
  const list = (all: Counts) =>
    Object.entries(all)
      .map(([state, count]) => `${count} ${state}`)
      .join(", ") || "none";
  const waits = oldest === null ? "" : `; the oldest waits for ${age(oldest)}`;
  return `${renderTable(["Provider", ...STATES, "All"], rows)}requests: ${list(requests)}${waits}\nleases: ${list(leases)}\n`;
}
