import type { LauncherProcess } from "./launcher.ts";
import { LABEL } from "./records.ts";
import { type Fulfilled, nodesLeft, type Requester } from "./requester.ts";
import type { Server } from "./server.ts";
import { percentile, round } from "./statistics.ts";

const LIMIT_MS = 300_000;

export interface Burst {
  readonly perSecond: number;
  readonly seconds: number;
  readonly firstMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** Of the launcher, from the first request to the last fulfilled. */
  readonly cpuMsPerRequest: number;
  readonly results: readonly Fulfilled[];
}

/** `count` requests at once, until all are fulfilled. Times are the tree's own, so the observer's speed does not count. */
export async function burst(requester: Requester, launcher: LauncherProcess, count: number): Promise<Burst> {
  const cpu = launcher.cpuMs();
  const ids = await requester.submit(LABEL, count);
  const results = await requester.fulfilled(ids, LIMIT_MS);
  const used = launcher.cpuMs() - cpu;
  const start = Math.min(...results.map((one) => one.createdAt));
  const ends = results.map((one) => one.fulfilledAt - start);
  const waits = results.map((one) => one.fulfilledAt - one.createdAt);
  const seconds = Math.max(...ends) / 1_000;
  return {
    perSecond: round(count / seconds),
    seconds: round(seconds, 3),
    firstMs: Math.min(...ends),
    p50Ms: percentile(waits, 0.5),
    p95Ms: percentile(waits, 0.95),
    cpuMsPerRequest: round(used / count, 3),
    results,
  };
}

/** Returns all nodes and waits until `left` nodes remain; returns the seconds that it took. */
export async function drain(server: Server, requester: Requester, one: Burst, left = 0): Promise<number> {
  const started = performance.now();
  await requester.giveBack(one.results);
  await nodesLeft(server.client, left, LIMIT_MS);
  return round((performance.now() - started) / 1_000, 3);
}
