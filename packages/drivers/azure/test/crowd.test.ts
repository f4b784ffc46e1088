import { DriverError, type Provider } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { AzureRig, compile } from "./rig.ts";

const MACHINES = 200;
const ZONES = ["1", "2", "3"];
/** One call is the least; the rest is lists. A launch that a full zone refused is made elsewhere by another call, which is not counted here. */
const [PER_LAUNCH, PER_DELETION] = [1.4, 1.2];

test("200 launches and deletions at once, throttled, with lost answers, a full zone and a driver that goes away", async () => {
  const rig = new AzureRig({
    ...{
      bootMs: 8_000,
      deletionMs: 6_000,
      lagMs: 1_500,
      pageSize: 250,
      buckets: { writes: [200, 10], deletes: [200, 10] },
    },
    ...{ capacity: [{ zone: "1", most: 20 }], quotas: { standardDSv5Family: 500, cores: 600 } },
  });
  const { azure } = rig;
  const config = compile({ small: {} }, { provider: { rate: 20 } });
  let provider: Provider = await rig.open(config);
  const first = provider;
  // As the scheduler: a zone that has no room gets no further launches for a while.
  const closed = new Set<string>();
  const orders = Array.from({ length: MACHINES }, (_, at) => rig.order(config, "small", at + 1));
  /** As the launcher: what passes is tried again, and another driver goes on with what one left. */
  const served = async (work: (az: string) => Promise<unknown>, at: number) => {
    for (let tries = 0; ; tries++) {
      const open = ZONES.filter((zone) => !closed.has(zone));
      const az = open[(at + tries) % open.length]!;
      try {
        return await work(az);
      } catch (error) {
        if (!(error instanceof DriverError) || tries > 20) throw error;
        if (error.kind === "capacity") closed.add(az);
      }
    }
  };
  const launching = Promise.all(
    orders.map((order, at) => served((az) => rig.launch(provider, { ...order, az }), at)),
  );
  launching.catch(() => {});
  await rig.clock.advance(3_000);
  azure.set({ faults: [{ call: "PUT virtualMachines", how: "drop-answer", times: 5 }] });
  await rig.clock.advance(3_000);
  provider = await rig.open(config);
  await rig.drive(first.close());
  await rig.drive(launching);
  const machines = azure.world.all("virtualMachines");
  expect(new Set(machines.map(({ tags }) => tags?.nodepool_node_id)).size).toBe(MACHINES);
  expect(machines).toHaveLength(MACHINES);
  const launched = azure.calls.length;
  const refused = azure.calls.filter(({ status }) => status === 409).length;
  await rig.drive(Promise.all(orders.map((order, at) => served(() => rig.delete(provider, order), at))));
  expect(azure.world.in("nodes").map(({ type }) => type)).toEqual(["Microsoft.Network/subnets"]);
  expect((launched - refused) / MACHINES).toBeLessThan(PER_LAUNCH);
  expect((azure.calls.length - launched) / MACHINES).toBeLessThan(PER_DELETION);
});

test("200 launches and deletions at once that nothing disturbs take one call each, and a fifth of one for lists", async () => {
  const rig = new AzureRig({
    ...{ bootMs: 30_000, deletionMs: 20_000, lagMs: 1_500, pageSize: 250 },
    quotas: { standardDSv5Family: 500, cores: 600 },
  });
  const { azure } = rig;
  const config = compile({ small: {} }, { provider: { rate: 10 } });
  const provider = await rig.open(config);
  const orders = Array.from({ length: MACHINES }, (_, at) => rig.order(config, "small", at + 1));
  // Of the first machine it learns how long Azure takes each way, before which no list is of use.
  const first = rig.order(config, "small", MACHINES + 1);
  await rig.create(provider, first);
  await rig.remove(provider, first);
  const before = azure.calls.length;
  await rig.drive(Promise.all(orders.map((order) => rig.launch(provider, order))));
  expect(azure.world.all("virtualMachines")).toHaveLength(MACHINES);
  const launched = azure.calls.length;
  await rig.drive(Promise.all(orders.map((order) => rig.delete(provider, order))));
  expect((launched - before) / MACHINES).toBeLessThan(PER_DELETION);
  expect((azure.calls.length - launched) / MACHINES).toBeLessThan(PER_DELETION);
});

test("more launches at once than the default rate takes in two minutes only wait", async () => {
  const rig = new AzureRig({ quotas: { standardDSv5Family: 500 } });
  const config = compile({ small: {} }, { provider: { rate: 1 } });
  const provider = await rig.open(config);
  const orders = Array.from({ length: 150 }, (_, at) => rig.order(config, "small", at + 1));
  await rig.drive(Promise.all(orders.map((order) => rig.launch(provider, order))));
  expect(rig.azure.world.all("virtualMachines")).toHaveLength(150);
});
