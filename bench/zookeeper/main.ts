// Compares @nodeyard/zookeeper with the ZooKeeper clients on npm; see README.md. Exit code 1: a limit was missed.
import { parseArgs } from "node:util";
import { BENCH_JVM_OPTIONS, requireZooKeeper, startZooKeeper } from "../../testing/zookeeper/index.ts";
import { CLIENTS, type OperationName } from "./clients/index.ts";
import { type Contestant, startContestant } from "./contestant.ts";
import { judge, median, type Series } from "./limits.ts";
import { DATA_BYTES, type Sample } from "./load.ts";
import { installPeers } from "./peers.ts";
import { startStubServer } from "./stub-server.ts";

const OPERATIONS: readonly OperationName[] = ["create", "get", "set"];

/** Operations in flight, and operations per series: long enough for a steady state, short enough to alternate often. */
const LEVELS: readonly (readonly [inFlight: number, count: number])[] = [
  [1, 400],
  [64, 3_000],
  [1_024, 6_000],
];

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    /** Writes a CPU profile of each client's process into this folder. */
    profile: { type: "string" },
    /** Only the stub server, which needs no ZooKeeper. */
    "stub-only": { type: "boolean", default: false },
  },
});

function print(figure: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ bench: "zookeeper", ...figure })}\n`);
}

/** Every client in turn on every load, `rounds` times, with another client first each round. */
async function compare(servers: string, rounds: number, prefix: string): Promise<Series[]> {
  const contestants = CLIENTS.map((name) => startContestant(name, servers, values.profile));
  const series = new Map<string, Series & { samples: Sample[] }>();
  try {
    await contestants[0]!.createParent(prefix);
    for (const contestant of contestants) await contestant.createParent(`${prefix}/${contestant.name}`);
    // Round -1 warms up processes and server; its results are discarded.
    for (let round = -1; round < rounds; round++) {
      for (const [inFlight, count] of LEVELS) {
        const turn = Math.max(0, round) % contestants.length;
        const order = [...contestants.slice(turn), ...contestants.slice(0, turn)];
        for (const [contestant, operation, sample] of await oneLevel(order, prefix, round, inFlight, count)) {
          const key = `${contestant.name} ${operation} ${inFlight}`;
          const entry = series.get(key) ?? { client: contestant.name, operation, inFlight, samples: [] };
          series.set(key, entry);
          if (round >= 0) entry.samples.push(sample);
        }
      }
    }
  } finally {
    await Promise.all(contestants.map((contestant) => contestant.close()));
  }
  return [...series.values()];
}

async function oneLevel(
  order: readonly Contestant[],
  prefix: string,
  round: number,
  inFlight: number,
  count: number,
): Promise<(readonly [Contestant, OperationName, Sample])[]> {
  const samples: (readonly [Contestant, OperationName, Sample])[] = [];
  const parentOf = (contestant: Contestant) => `${prefix}/${contestant.name}/${round + 1}-${inFlight}`;
  for (const contestant of order) await contestant.createParent(parentOf(contestant));
  for (const operation of OPERATIONS) {
    for (const contestant of order) {
      const load = { operation, inFlight, count, parent: parentOf(contestant) };
      samples.push([contestant, operation, await contestant.measure(load)]);
    }
  }
  return samples;
}

function report(server: string, all: readonly Series[]): void {
  for (const { client, operation, inFlight, samples } of all) {
    print({
      server,
      client,
      operation,
      inFlight,
      cpuMicrosPerOperation: round(median(samples.map(({ cpuMicros }) => cpuMicros))),
      operationsPerSecond: Math.round(median(samples.map(({ perSecond }) => perSecond))),
      rounds: samples.length,
    });
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

async function againstStub(rounds: number): Promise<void> {
  const stub = await startStubServer(DATA_BYTES);
  report("stub", await compare(stub.servers, rounds, "/bench"));
  await stub.close();
}

async function againstZooKeeper(rounds: number): Promise<boolean> {
  const server = await startZooKeeper({ jvmBase: BENCH_JVM_OPTIONS });
  try {
    const all = await compare(`${server.host}:${server.port}`, rounds, "/bench");
    report("zookeeper", all);
    const verdicts = judge(all);
    for (const verdict of verdicts) print({ ...verdict, ratio: round(verdict.ratio) });
    return verdicts.every(({ pass }) => pass);
  } finally {
    await server.stop();
  }
}

const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds ${values.rounds}: a number of at least 1`);
installPeers();
await againstStub(rounds);
if (!values["stub-only"]) {
  const missing = requireZooKeeper();
  if (missing !== undefined) throw new Error(missing);
  if (!(await againstZooKeeper(rounds))) process.exitCode = 1;
}
