import { DriverError, type Provider } from "@nodeyard/driver";
import { compile, GceRig } from "./rig.ts";

/**
 * `node packages/drivers/gce/test/crowd.ts [machines]`: so many launches and deletions at once in virtual time, with quotas of calls and of
 * instances, a zone without capacity, lists that lag, answers that are lost, and a driver that goes away in the middle. Says how many calls that
 * took, and fails if a machine is missing, doubled or left, or if a direction took more than 1.2 calls for each.
 */
const machines = Number(process.argv[2] ?? 200);
const MOST = 1.2;
const zones = ["us-central1-a", "us-central1-b", "us-central1-c"];
const rig = new GceRig({
  ...{
    startMs: 20_000,
    stopMs: 20_000,
    unseenMs: 2_000,
    perMinute: { write: 120, list: 60, read: 120, operations: 60 },
  },
  capacity: [{ zone: "us-central1-b", most: 0 }],
  quotas: { INSTANCES: Math.ceil(machines * 0.75), CPUS: 4 * machines, CPUS_ALL_REGIONS: 4 * machines },
});
const { cloud, clock } = rig;
const config = compile({ small: {} }, { pool: { "availability-zones": zones }, provider: { rate: 3 } });
const orders = Array.from({ length: machines }, (_, one) =>
  rig.order(config, String(one + 1).padStart(10, "0")),
);
const { signal } = new AbortController();

let provider: Provider = await rig.open(config);
const first = provider;
/** As the scheduler: no more than the quota at once, and a zone without room is closed for a while. */
const closed = new Map<string, number>();
let running = 0;
const most = Math.ceil(machines * 0.75);
const waiting: (() => void)[] = [];
const free = () => {
  running--;
  waiting.shift()?.();
};
const place = async () => {
  if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
  running++;
};
let next = 0;
function zone(): string {
  const open = zones.filter((one) => (closed.get(one) ?? 0) <= clock.monotonic());
  return open[next++ % open.length]!;
}

async function life(order: (typeof orders)[number], index: number): Promise<void> {
  // As the launcher, which starts no more than the rate lets through: a launch that waits for its turn has chosen its zone.
  await new Promise<void>((resolve) => clock.setTimer(index * 400, resolve));
  await place();
  let saved: string | null = null;
  for (let attempt = 1; ; attempt++) {
    const az = zone();
    try {
      const save = async (id: unknown) => {
        saved = id as string;
      };
      await rig.run(
        (step) => provider.create({ ...order, az, attempt }, step),
        saved,
        () => {},
        save,
      );
      break;
    } catch (error) {
      if (!(error instanceof DriverError) || attempt > 20) throw error;
      if (error.kind === "capacity") closed.set(az, clock.monotonic() + 600_000);
    }
  }
  up.add(order.tag.nodeId);
  while (up.size < most && ended.size === 0)
    await new Promise<void>((resolve) => clock.setTimer(1_000, resolve));
  for (let attempt = 1; ; attempt++) {
    try {
      await rig.run((step) => provider.remove(order.tag, step), saved);
      break;
    } catch (error) {
      if (!(error instanceof DriverError) || attempt > 20) throw error;
    }
  }
  ended.add(order.tag.nodeId);
  free();
}

const up = new Set<string>();
const ended = new Set<string>();
let largest = 0;
let doubled = 0;
const watched = (async () => {
  while (ended.size < machines) {
    const names = [...cloud.compute.instances.values()].map(({ name }) => name);
    largest = Math.max(largest, names.length);
    doubled = Math.max(doubled, names.length - new Set(names).size);
    await new Promise<void>((resolve) => clock.setTimer(500, resolve));
  }
})();
const disturbed = (async () => {
  while (up.size < machines * 0.25) await new Promise<void>((resolve) => clock.setTimer(500, resolve));
  cloud.set({ faults: [{ call: "instances.insert", how: "drop-answer", times: 5 }] });
  provider = await rig.opening(config);
  await first.close();
})();
await rig.drive(Promise.all([...orders.map(life), watched, disturbed]));
const left = (await rig.drive(provider.list(signal))).filter(({ tag }) => tag !== null).length;
const counts = cloud.counts();
const calls = (...names: string[]) => names.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
const perLaunch = calls("instances.insert", "zoneOperations.wait", "instances.get") / machines;
const perDeletion = calls("instances.delete") / machines;
console.log({
  ...{
    machines,
    up: up.size,
    largest,
    doubled,
    left,
    seconds: Math.round(clock.monotonic() / 1_000),
    perLaunch,
    perDeletion,
  },
  ...{ refusedByMinute: cloud.calls.filter(({ status }) => status === 403).length, counts },
});
await rig.stop();
if (up.size !== machines || doubled + left > 0 || perLaunch > MOST || perDeletion > MOST)
  process.exitCode = 1;
