import { age, msOf, renderTable } from "@nodeyard/operations/listing";
import type { Command } from "commander";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { printJson } from "../listing.ts";
import type { Session } from "../session.ts";
import { CLEAR, watching } from "../watching.ts";

interface TopOptions {
  readonly once?: boolean;
  readonly json?: boolean;
}

/** `nodeyard top`: the lists in numbers, again after changes. */
export function defineTop(command: Command, session: Session): void {
  command
    .option("--once", "print it once")
    .option("--json", "an object on stdout: providers, requests, leases; ages are seconds")
    .action(({ once, json }: TopOptions) =>
      withBackend(session, (backend) => {
        const { io } = session;
        const clear = once !== true && io.isTerminal ? CLEAR : "";
        const print = async () => {
          const all = await overview(backend);
          if (json === true) printJson(io, all);
          else io.out(`${clear}${textOf(all)}`);
        };
        if (once === true) return print();
        return watching(session, backend, ["node", "request", "lease"], print);
      }),
    );
}

/** Counts by state. */
type Counts = Readonly<Record<string, number>>;

/** The object of `--json`; keys are never renamed. */
interface Overview {
  /** Nodes by provider, including served providers without nodes. */
  readonly providers: Readonly<Record<string, Counts>>;
  readonly requests: Counts;
  /** Of the oldest request that no pool has taken, seconds. */
  readonly oldest_age: number | null;
  readonly leases: Counts;
}

/** Four lists at once. They are not of one moment: sums of nodes and requests may differ by what happens between them. */
async function overview(backend: Backend): Promise<Overview> {
  const [labels, nodes, requests, leases] = await Promise.all([
    backend.list("list_labels"),
    backend.list("list_nodes"),
    backend.list("list_requests"),
    backend.list("list_leases"),
  ]);
  // Served providers without nodes, too: "0" says more than a missing line.
  const names = new Set([
    ...labels.rows.flatMap(({ pools }) => pools.map((pool) => pool.slice(0, pool.lastIndexOf("/")))),
    ...nodes.rows.map(({ provider }) => provider ?? ""),
  ]);
  names.delete("");
  const of = (name: string) => nodes.rows.filter(({ provider }) => provider === name);
  const waiting = requests.rows.filter(({ state }) => state === "requested");
  const times = waiting.map(({ created, since }) => msOf(created ?? since) ?? 0);
  return {
    providers: Object.fromEntries([...names].sort().map((name) => [name, counts(of(name))])),
    requests: counts(requests.rows),
    oldest_age:
      times.length === 0 ? null : Math.max(0, Math.floor((backend.now() - Math.min(...times)) / 1_000)),
    leases: counts(leases.rows),
  };
}

/** Rows by state. */
function counts(rows: readonly { readonly state: string }[]): Counts {
  const found: Record<string, number> = {};
  for (const { state } of rows) found[state] = (found[state] ?? 0) + 1;
  return found;
}

/** Columns of a node's life; other states are in the total. */
const STATES = ["building", "ready", "in-use", "used", "hold", "deleting", "failed"];

/** Columns are states of a node's life in their order; a request's and a lease's states are counted in one line each. */
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
