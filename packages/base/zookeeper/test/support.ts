import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll } from "vitest";
import { patient } from "../../../../testing/patience.ts";
import {
  type ServerOptions,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { connect, type Status, type ZooKeeper, type ZooKeeperOptions } from "../src/index.ts";

const clients: ZooKeeper[] = [];
const PATIENCE_MS = patient(60_000);
/** Of a session that a test ends, milliseconds: what stands still for less than this does not end it before. */
export const SHORT_SESSION_MS = 4_000;

/** A connected client that `closeClients` closes. */
export async function client(
  to: { readonly host: string; readonly port: number } | string,
  options: ZooKeeperOptions = {},
): Promise<ZooKeeper> {
  const target = typeof to === "string" ? to : `${to.host}:${to.port}`;
  const made = await connect(target, { deadlineMs: PATIENCE_MS, ...options });
  clients.push(made);
  return made;
}

export async function closeClients(): Promise<void> {
  await Promise.all(clients.splice(0).map((one) => one.close()));
}

/** A server for the tests of a `describe`. Clients of `client` are closed before it stops. */
export function serverHere(options?: ServerOptions): ZooKeeperServer {
  let started: ZooKeeperServer | undefined;
  beforeAll(async () => {
    started = await startZooKeeper(options);
  });
  afterAll(async () => {
    await closeClients();
    await started?.stop();
  });
  return new Proxy({} as ZooKeeperServer, { get: (_, name: keyof ZooKeeperServer) => started?.[name] });
}

/** Waits until `probe` answers with something truthy. */
export async function until<T>(what: string, probe: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    const found = await probe();
    if (found) return found;
    await sleep(5);
  }
  throw new Error(`waited in vain for: ${what}`);
}

/** The states that a client goes through from now on. */
export function states(of: ZooKeeper): Status[] {
  const seen: Status[] = [];
  of.onStatus((status) => seen.push(status));
  return seen;
}

export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it should have failed");
}

let last = 0;
/** A path that no other test of this file uses, created. */
export async function freshPath(of: ZooKeeper): Promise<string> {
  const path = `/t${++last}`;
  await of.create(path);
  return path;
}
