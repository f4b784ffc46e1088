import type { ClientName, OperationName } from "./clients/index.ts";
import type { Sample } from "./load.ts";

/** All samples of one client on one load, one per round. */
export interface Series {
  readonly client: ClientName;
  readonly operation: OperationName;
  readonly inFlight: number;
  readonly samples: readonly Sample[];
}

export interface Verdict {
  readonly limit: string;
  readonly inFlight: number;
  readonly ratio: number;
  readonly bound: string;
  readonly pass: boolean;
}

/** The middle value; of an even number, the mean of the middle two. NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[half]!;
  return (sorted[half - 1]! + sorted[half]!) / 2;
}

const CPU_TO_PURE_BELOW = 1;
const CPU_TO_NATIVE_AT_MOST = 1.5;
const THROUGHPUT_TO_BEST_AT_LEAST = 0.95;

/**
 * Judges every level of requests in flight on the whole work, equal numbers of all operations. Ratios are taken within
 * each round, where the clients run right after one another, and then the median over the rounds, so that other load on
 * the machine cancels out.
 */
export function judge(all: readonly Series[]): Verdict[] {
  const levels = [...new Set(all.map(({ inFlight }) => inFlight))];
  return levels.flatMap((inFlight) => {
    const work = (client: ClientName) => wholeWork(all, client, inFlight);
    return judgeLevel(inFlight, work("ours"), work("node-zookeeper-client"), work("zookeeper"));
  });
}

/** Per round: CPU of the mean operation, and operations per second over all of them. */
function wholeWork(all: readonly Series[], client: ClientName, inFlight: number): Sample[] {
  const parts = all.filter((one) => one.client === client && one.inFlight === inFlight);
  const [first] = parts;
  if (first === undefined) throw new Error(`${client} was not measured at ${inFlight} in flight`);
  return first.samples.map((_, round) => {
    const samples = parts.map((part) => part.samples[round]!);
    const cpu = samples.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0);
    const seconds = samples.reduce((sum, { perSecond }) => sum + 1 / perSecond, 0);
    return { cpuMicros: cpu / samples.length, perSecond: samples.length / seconds };
  });
}

function judgeLevel(
  inFlight: number,
  ours: readonly Sample[],
  pure: readonly Sample[],
  native: readonly Sample[],
): Verdict[] {
  const ratio = (peer: readonly Sample[], of: (sample: Sample) => number) =>
    median(ours.map((mine, round) => of(mine) / of(peer[round]!)));
  const cpu = ({ cpuMicros }: Sample) => cpuMicros;
  const speed = ({ perSecond }: Sample) => perSecond;

  const toPure = ratio(pure, cpu);
  const toNative = ratio(native, cpu);
  // The best peer is the one that is faster over all rounds: the faster one of each round would be a matter of chance.
  const best = median(pure.map(speed)) > median(native.map(speed)) ? pure : native;
  const toBest = ratio(best, speed);
  return [
    {
      limit: "CPU per operation, to node-zookeeper-client",
      inFlight,
      ratio: toPure,
      bound: `< ${CPU_TO_PURE_BELOW}`,
      pass: toPure < CPU_TO_PURE_BELOW,
    },
    {
      limit: "CPU per operation, to zookeeper (native)",
      inFlight,
      ratio: toNative,
      bound: `<= ${CPU_TO_NATIVE_AT_MOST}`,
      pass: toNative <= CPU_TO_NATIVE_AT_MOST,
    },
    {
      limit: "throughput, to the faster peer",
      inFlight,
      ratio: toBest,
      bound: `>= ${THROUGHPUT_TO_BEST_AT_LEAST}`,
      pass: toBest >= THROUGHPUT_TO_BEST_AT_LEAST,
    },
  ];
}
