import { availableParallelism, loadavg } from "node:os";

/** Hands the factor on to the processes of a run, which have no quiet moment to measure it in. */
const FACTOR = "NODEYARD_TEST_PATIENCE";
/** A test that hangs has to end, too. */
const MOST = 8;
/** What `work` takes on the machine whose figures docs/design/ci-time.md has, while nothing else runs there. */
const WORK_MS = 130;

/**
 * How many times longer than on an idle machine a limit of time has to be: 1 to 8, by the load of the processors and by what
 * a piece of work takes, measured once for a run of tests.
 */
export function patience(): number {
  process.env[FACTOR] ??= String(measured());
  return Number(process.env[FACTOR]);
}

/** A limit of `ms`, which is enough on an idle machine, for this one. */
export function patient(ms: number): number {
  return Math.round(ms * patience());
}

function measured(): number {
  const load = loadavg()[0]! / availableParallelism();
  const factor = Math.min(MOST, Math.max(1, load, work() / WORK_MS));
  return Math.round(factor * 10) / 10;
}

/** Milliseconds that a fixed piece of work took. */
function work(): number {
  const started = performance.now();
  for (let left = 60_000_000, x = 1; left > 0 && x !== 0; left--) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return performance.now() - started;
}
