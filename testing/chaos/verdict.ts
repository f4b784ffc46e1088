import { existsSync, readFileSync } from "node:fs";
import { readJournal } from "@nodeyard/driver-fake";
import type { AppliedWrite, Tree } from "@nodeyard/tree";
import { LogCheck } from "../../simulation/checks/index.ts";
import { orNothing, patiently } from "./patience.ts";
import { LIMIT, POOL } from "./site.ts";

/** Replays a raw log against the rules that must always hold, those of the simulation. Throws `Broken` with an excerpt. */
export function checkLog(
  writes: readonly AppliedWrite[],
  check = new LogCheck({ pools: new Map([[POOL, { instances: LIMIT }]]) }),
): LogCheck {
  for (const [index, write] of writes.entries()) {
    try {
      check.take(write);
    } catch (error) {
      const { message } = error as Error;
      const id = /\d{10}/.exec(message)?.[0];
      throw new Error(`${message}\n${excerpt(writes.slice(0, index + 5), id).join("\n")}`, { cause: error });
    }
  }
  return check;
}

/** The last writes of a record, for the message of a failure. */
export function excerpt(writes: readonly AppliedWrite[], id: string | undefined, count = 25): string[] {
  return writes
    .filter(({ ops }) => id === undefined || ops.some((op) => op.path.includes(id) || holds(op, id)))
    .slice(-count)
    .map(({ zxid, at, client, ops, sessionEnd }) => {
      const what = ops.map((op) => `${op.op} ${op.path}${stateIn(op)}`).join(", ");
      return `  ${zxid} ${new Date(at).toISOString().slice(11, 23)} ${client}${sessionEnd ? " (session ended)" : ""}: ${what}`;
    });
}

function holds(op: AppliedWrite["ops"][number], id: string): boolean {
  return "data" in op && op.data !== undefined && Buffer.from(op.data).includes(id);
}

function stateIn(op: AppliedWrite["ops"][number]): string {
  if (!("data" in op) || op.data === undefined || op.data.length === 0) return "";
  const text = Buffer.from(op.data).toString();
  const [state, allocated] = [
    /"state": ?"([^"]+)"/.exec(text)?.[1],
    /"allocated_to": ?("[^"]+"|null)/.exec(text)?.[1],
  ];
  return state === undefined ? "" : ` [${state}${allocated === undefined ? "" : ` ${allocated}`}]`;
}

/** What the cloud's own history says: one live machine per tag at any moment. Returns what is alive in the end. */
export function checkCloud(file: string): ReadonlyMap<string, string> {
  const alive = new Map<string, string>();
  if (!existsSync(file)) return alive;
  const known = new Map<string, string>();
  for (const event of readJournal(readFileSync(file, "utf8"))) {
    if (event.op === "create") {
      const { id, tag } = event.server;
      const node = tag?.nodeId ?? "none";
      const other = [...alive].find(([, owner]) => owner === node)?.[0];
      // The cloud lets the first of two creates of one tag count, as a cloud with idempotency tokens does.
      if (other === undefined) alive.set(id, node);
      known.set(id, node);
    } else {
      if (!known.has(event.id)) throw new Error(`the cloud deleted ${event.id}, which it never made`);
      alive.delete(event.id);
    }
  }
  return alive;
}

/** Records that are left in the tree and should be gone; empty if there are none. */
export async function leftovers(tree: Tree): Promise<readonly string[]> {
  const left: string[] = [];
  for (const folder of ["/nodepool/requests", "/nodepool/nodes", "/nodeyard/leases"])
    left.push(...(await childrenOf(tree, folder)).map((name) => `${folder}/${name}`));
  for (const id of await childrenOf(tree, "/nodepool/requests-lock")) {
    // The lock's parent stays for eight hours (docs/contract/locks.md, "Lock parents of requests"); nobody may stand in its line.
    const line = await childrenOf(tree, `/nodepool/requests-lock/${id}`);
    left.push(...line.map((name) => `/nodepool/requests-lock/${id}/${name}`));
  }
  return left;
}

/** Ledgers whose sum is not zero although no record is left. */
export async function ledgerSums(tree: Tree): Promise<readonly string[]> {
  const path = `/nodeyard/limits/${POOL}`;
  const { data } = await patiently(() => tree.get(path));
  const { instances } = JSON.parse(Buffer.from(data).toString()) as { instances?: number };
  return instances === 0 ? [] : [`${path}: ${instances}`];
}

export async function childrenOf(tree: Tree, path: string): Promise<readonly string[]> {
  return (await orNothing(() => tree.children(path))) ?? [];
}
