import { DriverError, type ExternalId, type Provider } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { compile, IbmRig } from "./rig.ts";

const MACHINES = 200;
const MOST = 150;
const ZONES = ["us-south-1", "us-south-2", "us-south-3"];
const SUBNETS = {
  zone: undefined,
  subnet: undefined,
  subnets: ["sn-nodepool", "sn-nodepool-2", "sn-nodepool-3"],
};

/**
 * As many launches and deletions as the quota takes at once, and then the rest, throttled, with a full zone, lists that lag, answers that are
 * lost, and a driver that goes away in the middle. Calls for each launch and each deletion; those that a full zone refused are not counted.
 */
async function crowd(pool: object) {
  const rig = new IbmRig({
    ...{ startMs: 20_000, stopMs: 10_000, unseenMs: 1_500, bucket: [60, 20] },
    ...{ capacity: [{ zone: ZONES[0]!, most: 10 }], quotas: { instances: MOST } },
  });
  const { cloud, clock } = rig;
  const config = compile({ small: {} }, { pool: { ...SUBNETS, ...pool }, provider: { rate: 15 } });
  let provider: Provider = await rig.open(config);
  const first = provider;
  const closed = new Set<string>();
  const saved = new Map<string, ExternalId>();
  /** As the launcher: what passes is tried again, in another zone when one has no room, and later when the quota is used up. */
  const served = async <T>(at: number, work: (az: string, attempt: number) => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      const open = ZONES.filter((zone) => !closed.has(zone));
      const az = open[(at + attempt) % open.length]!;
      try {
        return await work(az, attempt);
      } catch (error) {
        if (!(error instanceof DriverError) || attempt > 30) throw error;
        if (error.kind === "capacity") closed.add(az);
        await new Promise<void>((resolve) => clock.setTimer(5_000, resolve));
      }
    }
  };
  let running = 0;
  let doubled = 0;
  const life = async (at: number) => {
    const order = rig.order(config, String(at + 1).padStart(10, "0"));
    const { nodeId } = order.tag;
    while (running >= MOST) await new Promise<void>((resolve) => clock.setTimer(1_000, resolve));
    running++;
    const save = async (id: ExternalId) => void saved.set(nodeId, id);
    const stored = () => saved.get(nodeId) ?? null;
    await served(at, (az, attempt) =>
      rig.run(
        (step) => provider.create({ ...order, az, attempt }, step),
        stored(),
        () => {},
        save,
      ),
    );
    const names = [...cloud.vpc.instances.values()].map(({ name }) => name);
    doubled += names.length - new Set(names).size;
    await new Promise<void>((resolve) => clock.setTimer(5_000, resolve));
    await served(at, () => rig.run((step) => provider.remove(order.tag, step), stored()));
    running--;
  };
  const lives = Promise.all(Array.from({ length: MACHINES }, (_, at) => life(at)));
  lives.catch(() => {});
  await clock.advance(6_000);
  cloud.set({ faults: [{ call: "POST instances", how: "drop-answer", times: 5 }] });
  await clock.advance(4_000);
  provider = await rig.open(config);
  await rig.drive(first.close());
  await rig.drive(lives);
  const counts = cloud.counts();
  const refused = cloud.calls.filter(
    ({ call, status }) => call === "POST instances" && status !== 201 && status !== 0,
  );
  const calls = (form: RegExp) =>
    Object.entries(counts).reduce((sum, [call, count]) => (form.test(call) ? sum + count : sum), 0);
  const full = [...closed].length > 0 ? calls(/^DELETE instances/) - MACHINES : 0;
  const throttled = (form: RegExp) =>
    cloud.calls.filter(({ call, status }) => form.test(call) && status === 429).length;
  await rig.stop();
  return {
    ...{
      doubled,
      left: cloud.vpc.instances.size + cloud.vpc.volumes.size,
      addresses: cloud.vpc.floatingIps.size,
    },
    perLaunch: (calls(/^POST instances|^GET instances.\*/) - refused.length - full) / MACHINES,
    perDeletion: (calls(/^DELETE instances/) - full - throttled(/^DELETE/)) / MACHINES,
    perAddress:
      (calls(/floating_ips/) - calls(/^GET floating_ips$/) - throttled(/^(PATCH|POST|PUT).*floating_ips/)) /
      MACHINES,
    lists: calls(/^GET (instances|floating_ips)$/) / MACHINES,
  };
}

test("200 launches and deletions at once leave and double nothing, with one call for each", async () => {
  const { doubled, left, perLaunch, perDeletion, lists } = await crowd({});
  expect({ doubled, left }).toEqual({ doubled: 0, left: 0 });
  expect(perLaunch).toBeLessThan(1.2);
  expect(perDeletion).toBeLessThan(1.2);
  // Shared by all that wait.
  expect(lists).toBeLessThan(1);
});

test("the same with floating IPs, which take two or three calls more for each node, and of which there are fewer than nodes", async () => {
  const { doubled, left, addresses, perAddress } = await crowd({ "public-ipv4": true });
  expect({ doubled, left }).toEqual({ doubled: 0, left: 0 });
  expect(perAddress).toBeLessThan(3.6);
  expect(addresses).toBeLessThan(MACHINES);
});
