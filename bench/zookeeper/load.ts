import type { BenchClient, OperationName } from "./clients/index.ts";

/** A series of equal operations. */
export interface Load {
  readonly operation: OperationName;
  readonly inFlight: number;
  /** Operations, each on a path of its own. */
  readonly count: number;
  /** An existing znode under which the paths lie. */
  readonly parent: string;
}

export interface Sample {
  /** Processor time of the whole process, user and system, per operation, microseconds. */
  readonly cpuMicros: number;
  readonly perSecond: number;
}

export const DATA_BYTES = 600;
const DATA = Buffer.alloc(DATA_BYTES, "x");

/** Runs a load, with `inFlight` operations open until all have been started. */
export function carryOut(client: BenchClient, load: Load): Promise<Sample> {
  const paths = Array.from({ length: load.count }, (_, index) => `${load.parent}/${index}`);
  return new Promise((resolve, reject) => {
    let started = 0;
    let ended = 0;
    const cpu = process.cpuUsage();
    const begin = performance.now();

    function done(error?: unknown): void {
      if (error) {
        reject(new Error(`${load.operation} under ${load.parent} failed: ${String(error)}`));
        return;
      }
      ended++;
      if (started < paths.length) next();
      else if (ended === paths.length) finish();
    }
    function next(): void {
      const path = paths[started++]!;
      if (load.operation === "get") client.get(path, done);
      else if (load.operation === "set") client.set(path, DATA, done);
      else client.create(path, DATA, done);
    }
    function finish(): void {
      const seconds = (performance.now() - begin) / 1000;
      const used = process.cpuUsage(cpu);
      resolve({ cpuMicros: (used.user + used.system) / load.count, perSecond: load.count / seconds });
    }
    for (let i = Math.min(load.inFlight, paths.length); i > 0; i--) next();
  });
}

/** Creates one empty znode. */
export function createEmpty(client: BenchClient, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    client.create(path, Buffer.alloc(0), (error) => (error ? reject(error) : resolve()));
  });
}
