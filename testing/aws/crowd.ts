import { crowd } from "./launchers.ts";

/**
 * `node tools/run.mjs testing/aws/crowd.ts [requests] [launchers]`: fails unless all are served, no node has two machines, nothing is left, and each
 * machine took at most 1.1 calls to make and as many to delete.
 */
const [requests = 500, launchers = 3] = process.argv.slice(2).map(Number);
const figures = await crowd({
  ...{ requests, launchers, quota: 60 },
  kills: [0.2, 0.45, 0.7],
  limitMs: 3_600_000,
});
console.log(figures);
const { served, machines, nodes, left, mostAtOnce, calls } = figures;
const most = machines * 1.1;
const isGood =
  served === requests &&
  machines === nodes &&
  left.length === 0 &&
  mostAtOnce <= 60 &&
  calls.run <= most &&
  calls.terminate <= most;
process.exit(isGood ? 0 : 1);
