import { DriverError } from "@nodeyard/driver";
import { sleep } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const HOUR = 3_600_000;
/** As often as a launcher asks on its own, and once more. */
const ASKED_IDLE = 13;

test("a cloud that refuses for quota while it is asked is not asked more often ever after", async () => {
  const world = new World();
  let asked = 0;
  let launches = 0;
  const wrap = withMethods((inner) => ({
    create: async function* (order, context) {
      if (launches++ % 2 === 0) {
        yield { step: "boot", deadlineMs: 60_000 };
        await sleep(world.clock, 1_000 * (1 + (launches % 9)), context.signal);
        throw new DriverError("quota", "Quota exceeded");
      }
      return yield* inner.create(order, context);
    },
    quota: async (signal) => {
      asked += 1;
      await sleep(world.clock, 5_000, signal);
      return inner.quota(signal);
    },
  }));
  await world.start("a", launcherConfig([fakeProvider()]), { wrap });
  for (let minute = 0; minute < 10; minute++) {
    const ids: string[] = [];
    while (ids.length < 8) ids.push(await world.ask());
    await world.run(30_000);
    for (const id of ids)
      if (world.request(id)?.state === "fulfilled") await world.use(id);
      else await world.settle(world.other.delete(`/nodepool/requests/${id}`));
    await world.run(30_000);
  }
  expect(asked).toBeGreaterThan(20);
  await world.run(HOUR / 6);
  const before = asked;
  await world.run(HOUR);
  expect(asked - before).toBeLessThanOrEqual(ASKED_IDLE);
});
