import { expect, test } from "vitest";
import { HELD_FOR, listed, PoolSite, seed } from "../index.ts";

test("the seeded pool has what people look at, also after kill -9", async () => {
  await using site = await PoolSite.start();
  const call = site.as(await site.token("seeder", "operator"));
  const { granted, launching, waiting, held } = await seed(call);
  await site.stop("SIGKILL");
  await site.startUp();
  const states = async () =>
    Object.fromEntries((await listed(call, "/v1/leases")).map(({ id, state }) => [id, state]));
  await expect
    .poll(states)
    .toMatchObject({ [granted]: "granted", [launching]: "waiting", [waiting]: "waiting" });
  expect(await listed(call, `/v1/nodes?id=${held}`)).toMatchObject([{ state: "hold", comment: HELD_FOR }]);
  expect(await site.run("list")).toContain(held);
});
