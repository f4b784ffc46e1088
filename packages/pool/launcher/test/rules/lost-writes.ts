import { paths } from "@nodeyard/model";
import type { AppliedWrite, CallInfo, Fault } from "@nodeyard/tree";
import { expect } from "vitest";
import { LogCheck } from "../../../../../simulation/checks/index.ts";
import type { World } from "./world.ts";

/** Name of the launcher whose writes are counted; `LogCheck` knows launchers by its beginning. */
export const VICTIM = "launcher-a";

/** What can become of one write whose answer never comes. */
export const LOSSES = ["lose-request", "lose-reply"] as const;
export type Loss = (typeof LOSSES)[number];

/** How long what a lost answer left behind may stand, milliseconds of virtual time. */
const CLEAN_MS = 20_000;

/** Loses the n-th write of the launcher, and says what kind of write it was. */
export class ReplyDroppingProxy {
  readonly #at: number;
  readonly #loss: Loss;
  #seen = 0;
  /** The kind of write that was struck; undefined: there were fewer. */
  struck: string | undefined;

  constructor(at: number, loss: Loss) {
    this.#at = at;
    this.#loss = loss;
  }

  readonly fault = ({ client, kind, ops }: CallInfo): Fault => {
    if (client !== VICTIM || kind !== "write" || ++this.#seen !== this.#at) return undefined;
    this.struck = kindOf(ops);
    return this.#loss;
  };
}

/** A write without its ids: `create nodes/#, set limits/cloud/main`, with the state that a record gets. */
export function kindOf(ops: CallInfo["ops"]): string {
  return ops
    .map((op) => {
      const path = op.path
        .replace(/^\/nodepool\//, "")
        .replace(/[0-9a-f]{32}__lock__\d*/, "contender")
        .replace(/\b\d{3}-(\d{10})?(?=\/|$)/, "#")
        .replace(/nodes\/\d{10}|nodes\/$/, "nodes/#")
        .replace(/(members|standings|hosts)\/.*/, "$1/#")
        .replace(/leases\/.*/, "leases/#")
        .replace(/(components\/\w+\/).*/, "$1#");
      const data = "data" in op && op.data !== undefined ? Buffer.from(op.data).toString() : "";
      // A report has the states of many things.
      const state = path.endsWith("standings/#") ? undefined : /"state":\s?"([a-z-]+)"/.exec(data)?.[1];
      return `${op.op} ${path}${state === undefined ? "" : ` ${state}`}`;
    })
    .join(", ");
}

/** Holds the whole log against the rules, as the simulation does. */
export function checkLog(
  log: readonly AppliedWrite[],
  limits: ReadonlyMap<string, number> = new Map(),
): LogCheck {
  const pools = new Map([...limits].map(([pool, instances]) => [pool, { instances }]));
  const check = new LogCheck({ pools });
  for (const write of log) if (!isGhost(write)) check.take(write);
  return check;
}

/** What an older locker makes when it comes too late: a node path without data, by nobody's rules. */
function isGhost({ client, ops }: AppliedWrite): boolean {
  const [op] = ops;
  return client === "other" && op?.op === "create" && /\/nodes\/\d{10}$/.test(op.path) && !op.data?.length;
}

/** What is not as it should be when everybody is done; `idle` free nodes may stand. */
export function leftovers(world: World, idle: number): string[] {
  const left: string[] = [];
  for (const id of world.children(paths.requests)) left.push(`request ${id} ${world.request(id)?.state}`);
  for (const id of world.children(paths.requestsLock)) {
    const names = world.children(paths.requestLock(id));
    if (names.length > 0) left.push(`contenders of request ${id}: ${names}`);
  }
  const nodes = world.nodes();
  for (const { id, state, allocated_to } of nodes) {
    const names = world.children(paths.nodeLock(id));
    if (names.length > 0) left.push(`contenders of node ${id}: ${names}`);
    if (state !== "ready" || allocated_to !== null) left.push(`node ${id} ${state} for ${allocated_to}`);
  }
  if (nodes.length !== idle) left.push(`${nodes.length} nodes, not ${idle}`);
  const launched = nodes.filter((node) => node.provider === "cloud");
  const machines = world.cloud.inspect().map(({ tag }) => tag?.nodeId);
  if (machines.sort().join() !== launched.map(({ id }) => id).join()) left.push(`machines of ${machines}`);
  const ledger = world.json("/nodeyard/limits/cloud/main");
  if (ledger !== undefined && ledger.instances !== launched.length)
    left.push(`ledger ${ledger.instances}, not ${launched.length}`);
  const leases = world.children("/nodeyard/leases");
  if (leases.length > 0) left.push(`leases ${leases}`);
  return left;
}

/** Waits until nothing is left over, then holds the log against the rules. */
export async function expectClean(
  world: World,
  what: string,
  { idle = 0, limits }: { readonly idle?: number; readonly limits?: ReadonlyMap<string, number> } = {},
): Promise<void> {
  const clean = () => leftovers(world, idle).length === 0;
  await world.until(what, clean, CLEAN_MS).catch((error: Error) => {
    throw new Error(`${what}: ${leftovers(world, idle).join("; ")}\n${error.message}`);
  });
  checkLog(world.cluster.log, limits);
  for (const { log, counters } of world.members) {
    expect(counters.value("launcher.unexpected"), `${what}: ${JSON.stringify(log.lines.slice(-5))}`).toBe(0);
  }
}
