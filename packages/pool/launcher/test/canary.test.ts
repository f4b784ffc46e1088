import { DriverError } from "@nodeyard/driver";
import { BREAKERS, type Canary, canaryPath, decodeCanary, paths } from "@nodeyard/model";
import { noBoots } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig } from "./rig.ts";
import { withMethods } from "./rules/with-methods.ts";
import { World } from "./rules/world.ts";

const [PROVEN, CANDIDATE] = ["a".repeat(32), "b".repeat(32)];

/** A launcher whose cloud boots the proven build and nothing else. */
async function launching(share: number) {
  const booting = fakeProvider(
    "cloud",
    { diskimages: [{ name: "noble" }], "launch-retries": 2 },
    { labels: [{ name: "small", diskimage: "noble", "flavor-name": "Fake Flavor" }] },
  );
  const world = new World();
  const orders: unknown[] = [];
  const started = await world.start("a", launcherConfig([booting]), {
    wrap: withMethods((inner) => ({
      create(order, step) {
        orders.push(order.imageExternalId);
        if (order.imageExternalId === CANDIDATE) throw new DriverError("timeout", "it does not answer");
        return inner.create(order, step);
      },
    })),
  });
  const tallies = { candidate: noBoots, stable: noBoots };
  const canary = { candidate: CANDIDATE, since: 0, share, tallies, rejected: [], last: null };
  await world.put(canaryPath("noble"), { v: 1, ...canary });
  for (const [at, build] of [PROVEN, CANDIDATE].entries()) {
    await world.put(paths.imageBuild("noble", build), { state: "ready", state_time: at + 1 });
    const upload = paths.imageUpload("noble", build, "cloud", "0000000001");
    await world.put(upload, { state: "ready", state_time: at + 1, external_id: build });
  }
  return { world, orders, ...started };
}

const reported = (world: World): Canary["tallies"] =>
  decodeCanary("noble", Buffer.from(world.text(canaryPath("noble")) ?? "")).tallies;

test("a client gets its node although the build on trial does not boot; both launches are counted", async () => {
  const { world, orders } = await launching(0.999);
  const id = await world.ask();
  const { nodes } = await world.fulfilled(id);
  expect(orders).toEqual([CANDIDATE, PROVEN]);
  const upload = paths.imageUpload("noble", PROVEN, "cloud", "0000000001");
  expect(world.node((nodes as string[])[0]!)).toMatchObject({ image_id: upload });
  await world.until("it is told", () => reported(world).stable.boots === 1);
  expect(reported(world)).toMatchObject({
    candidate: { boots: 0, failed: 1 },
    stable: { boots: 1, failed: 0 },
  });
});

test("a crowd whose build on trial does not boot is served by the proven one: no breaker opens for its failures", async () => {
  const { world, orders } = await launching(0.999);
  const ids: string[] = [];
  while (ids.length < 12) ids.push(await world.ask());
  for (const id of ids) await world.fulfilled(id);
  expect(orders.filter((order) => order === CANDIDATE)).toHaveLength(12);
  expect(world.children(BREAKERS)).toEqual([]);
  // Of a crowd that tells in one moment not each is counted.
  await world.until("it is told", () => reported(world).candidate.failed >= 5);
});
