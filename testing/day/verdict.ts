import { type Lease, leaseRequestor } from "@nodeyard/model";
import type { AppliedWrite } from "@nodeyard/tree";
import { type IsDead, LogCheck, type Setting, takenOf } from "../../simulation/checks/index.ts";
import { POOL } from "../chaos/site.ts";
import { checkCloud, checkLog } from "../chaos/verdict.ts";
import type { Mark } from "./ledger.ts";
import { LIMITS, TENANT } from "./site.ts";

/** Of the jobs of one client with one priority: what it asked of the pool, by the records. Milliseconds. */
export interface Row {
  readonly client: string;
  /** 100 is served before 200. */
  readonly priority: string;
  readonly requests: number;
  /** Those that got nodes; others were given up. */
  readonly served: number;
  readonly median: number;
  readonly p95: number;
  readonly longest: number;
  /** Most requests that were served before one of these though it had a better place in line. */
  readonly overtaken: number;
}

export interface Verdict {
  readonly rows: readonly Row[];
  /** What should not have happened. */
  readonly faults: readonly string[];
  readonly nodes: number;
}

/** Launchers see a request at different moments, and a kill may cost a place: as many as in the simulation (simulation/checks/order.ts). */
const OVERTAKEN_MOST = 6;

/** Each job began and ended once, and no other had its node meanwhile. */
export function ledgerFaults(jobs: readonly string[], marks: readonly Mark[]): readonly string[] {
  const of = Map.groupBy(marks, ({ job }) => job);
  const faults = jobs.flatMap((job) => {
    const said = (of.get(job) ?? []).map(({ what }) => what).join(" ");
    return said === "begin end" ? [] : [`${job} did not run once: ${said || "never"}`];
  });
  for (const job of of.keys()) if (!jobs.includes(job)) faults.push(`nobody knows ${job}`);
  for (const [address, own] of Map.groupBy(marks, (mark) => mark.address)) {
    let present: string | undefined;
    for (const { job, what } of own) {
      if (what === "begin" && present !== undefined)
        faults.push(`${present} and ${job} were on ${address} at once`);
      present = what === "begin" ? job : undefined;
    }
  }
  return faults;
}

interface Asked {
  readonly client: string;
  readonly tenant: unknown;
  readonly at: number;
  /** Requests that were accepted while it waited, though it has a better place in line. */
  readonly passing: Set<string>;
  /** Those of them that were served while it still waited: one that is put back has taken nothing. */
  readonly overtaken: string[];
  servedAt?: number;
}

/**
 * Replays everything that was done to the tree, in its order, against the rules of the simulation, among them that no limit is exceeded at any
 * write and that no node is given twice; and measures how each request waited. `cloud`: path of the cloud's journal.
 */
export function judge(log: readonly AppliedWrite[], cloud: string, marks: readonly Mark[]): Verdict {
  const clients = clientsOf(log);
  const writes = named(log);
  const last = new Map(
    writes.flatMap(({ client, zxid, sessionEnd }) => (sessionEnd ? [] : [[client, zxid]])),
  );
  const isDead: IsDead = (client, { zxid }) => client !== undefined && (last.get(client) ?? zxid) < zxid;
  const asked = new Map<string, Asked>();
  const waiting = new Set<string>();
  const addresses = new Set<unknown>();
  const check = new LogCheck({ ...SETTING, isDead }, (kind, id, _from, to, write) => {
    if (kind === "node") {
      if (to === "ready") addresses.add(check.nodes.get(id)!.data.interface_ip);
      return;
    }
    const data = check.requests.get(id)?.data;
    const at = Number(data?.state_time) * 1_000;
    if (to === "requested") {
      const client = clients.get(String(data?.requestor)) ?? "zuul";
      if (!asked.has(id))
        asked.set(id, { client, tenant: data?.tenant_name, at, passing: new Set(), overtaken: [] });
      for (const other of waiting) asked.get(other)!.passing.delete(id);
      waiting.add(id);
      return;
    }
    if (waiting.delete(id) && data !== undefined && to !== "failed") accepted(id, placeOf(id, data), write);
    if (to !== "fulfilled") return;
    asked.get(id)!.servedAt = at;
    for (const other of waiting) {
      const { passing, overtaken } = asked.get(other)!;
      if (passing.delete(id)) overtaken.push(id);
    }
  });
  const accepted = (mine: string, place: string, write: AppliedWrite) => {
    const people = takenOf(check.nodes).tenants.get(TENANT)?.instances ?? 0;
    for (const id of waiting) {
      const theirs = asked.get(id)!;
      if (isDead(check.requestLocks.holder(id), write)) continue;
      // A tenant that has all that it may have waits for itself.
      const isLimited = theirs.tenant === TENANT && people >= LIMITS.tenant;
      if (!isLimited && placeOf(id, check.requests.get(id)!.data) < place) theirs.passing.add(mine);
    }
  };
  checkLog(writes, check);
  const rows = [...Map.groupBy(asked, ([id, { client }]) => `${id.slice(0, 3)} ${client}`)]
    .sort()
    .map(([key, own]) =>
      rowOf(
        key,
        own.map(([, one]) => one),
      ),
    );
  const machines = [...checkCloud(cloud)].map(
    ([machine, node]) => `machine ${machine} of node ${node} is left`,
  );
  const faults = [
    ...[...check.nodes.keys()].map((id) => `node ${id} is left`),
    ...[...check.requests.keys()].map((id) => `request ${id} is left`),
    ...machines,
    ...marks
      .filter(({ address }) => !addresses.has(address))
      .map(({ job, address }) => `${job} ran at ${address}, which no node had`),
    ...[...asked]
      .filter(([, { overtaken }]) => overtaken.length > OVERTAKEN_MOST)
      .map(([id, { client, overtaken }]) => `${id} of ${client} was overtaken by ${overtaken.join(", ")}`),
  ];
  return { rows, faults, nodes: addresses.size };
}

const SETTING: Setting = {
  pools: new Map([[POOL, { instances: LIMITS.pool }]]),
  tenants: new Map([[TENANT, { instances: LIMITS.tenant }]]),
  launching: new Map([["fake-cloud", { instances: LIMITS.launching }]]),
};

/** Requests are served in the order of these (docs/contract/zuul.md). */
function placeOf(id: string, data: Readonly<Record<string, unknown>>): string {
  return `${id.slice(0, 3)} ${String(data.relative_priority ?? 0).padStart(6, "0")} ${id.slice(4)}`;
}

/** Who is behind the requests of leases, by requestor: the system of the lease's job, else the name of the token. */
function clientsOf(log: readonly AppliedWrite[]): ReadonlyMap<string, string> {
  const clients = new Map<string, string>();
  for (const { ops } of log)
    for (const op of ops) {
      const id = /^\/nodeyard\/leases\/([^/]+)$/.exec(op.path)?.[1];
      if (id === undefined || !("data" in op) || op.data === undefined) continue;
      const { job, owner } = JSON.parse(Buffer.from(op.data).toString()) as Lease;
      clients.set(leaseRequestor(id), job?.system === "zuul" ? "zuul, leased" : (job?.system ?? owner));
    }
  return clients;
}

/** The sessions of launchers have the names by which the rules know them. */
function named(log: readonly AppliedWrite[]): readonly AppliedWrite[] {
  const launchers = new Set(
    log
      .filter(({ ops }) =>
        ops.some(({ op, path }) => op === "create" && path.startsWith("/nodepool/components/pool/")),
      )
      .map(({ client }) => client),
  );
  return log.map((write) =>
    launchers.has(write.client) ? { ...write, client: `launcher-${write.client}` } : write,
  );
}

function rowOf(key: string, own: readonly Asked[]): Row {
  const waits = own
    .flatMap(({ at, servedAt }) => (servedAt === undefined ? [] : [servedAt - at]))
    .sort((a, b) => a - b);
  const of = (share: number) =>
    Math.round(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? Number.NaN);
  return {
    ...{ client: key.slice(4), priority: key.slice(0, 3), requests: own.length, served: waits.length },
    ...{ median: of(0.5), p95: of(0.95), longest: of(1) },
    overtaken: Math.max(...own.map(({ overtaken }) => overtaken.length)),
  };
}
