import { DriverError } from "@nodeyard/driver";
import { AwsRig, compile } from "./rig.ts";

/**
 * `node packages/drivers/aws/test/crowd.ts [machines]`: so many launches and deletions at once, with EC2's token buckets, answers that are lost,
 * and a driver that goes away in the middle. Says how many calls that took, and fails if a machine is missing, doubled or left.
 */
const machines = Number(process.argv[2] ?? 200);
const rig = await AwsRig.start();
await rig.server.set({ throttle: true, pendingMs: 3_000, stoppingMs: 3_000, invisible: 1 });
const config = compile(rig.site, { small: {} }, { provider: { rate: 2, "launch-timeout": 3600 } });
const orders = Array.from({ length: machines }, (_, one) =>
  rig.order(config, "small", String(one + 1).padStart(10, "0")),
);
const began = performance.now();

/** As the launcher: what may pass is tried again, and another driver goes on with what one left. */
async function served(work: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return void (await work());
    } catch (error) {
      if (!(error instanceof DriverError) || tries > 20) throw error;
    }
  }
}

let provider = await rig.open(config);
const first = provider;
const launching = Promise.all(orders.map((order) => served(() => rig.create(provider, order))));
for (const share of [0.25, 0.5]) {
  while (((await rig.server.counts())["ec2.RunInstances"] ?? 0) < machines * share)
    await new Promise((resolve) => setTimeout(resolve, 500));
  if (share === 0.25)
    await rig.server.set({ faults: [{ call: "ec2.RunInstances", how: "drop-answer", times: 5 }] });
  else {
    provider = await rig.open(config);
    await first.close();
  }
}
await launching;
const launched = performance.now();
const own = async () => {
  const listed = await provider.list(new AbortController().signal);
  return listed.filter(({ type, tag, ended }) => type === "instance" && tag !== null && ended !== true);
};
const up = await own();
const nodes = new Set(up.map(({ tag }) => tag!.nodeId));
const atLaunch = await rig.server.counts();
await Promise.all(orders.map((order) => served(() => rig.remove(provider, order))));
const left = await own();
const counts = await rig.server.counts();
const seconds = (ms: number) => Math.round(ms / 1000);
console.log({
  machines,
  up: up.length,
  nodes: nodes.size,
  left: left.length,
  seconds: { launch: seconds(launched - began), deletion: seconds(performance.now() - launched) },
  calls: {
    RunInstances: counts["ec2.RunInstances"],
    TerminateInstances: counts["ec2.TerminateInstances"],
    DescribeInstances: [atLaunch["ec2.DescribeInstances"], counts["ec2.DescribeInstances"]],
  },
  throttled: (await rig.server.calls()).filter(({ code }) => code === "RequestLimitExceeded").length,
});
await rig.stop();
if (up.length !== machines || nodes.size !== machines || left.length > 0) process.exitCode = 1;
