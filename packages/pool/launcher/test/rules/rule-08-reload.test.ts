import { expect, test } from "vitest";
import { policy, pool, SchedulerFixture } from "../../../scheduler/test/world.ts";

test("rule 8: a pool that leaves while requests wait for it leaves no turn that asks for another one for ever", () => {
  const one = policy([pool({ limits: { instances: 1 } })]);
  const fixture = new SchedulerFixture(one);
  fixture.request("100-0000000000");
  for (let at = 1; at < 4; at++) fixture.request(`100-000000000${at}`);
  // The fixture turns until nothing is left to do, and throws when that never comes.
  fixture.tell({ type: "policy", policy: policy([pool({ provider: "other" })]) });
  expect(fixture.state.pools.size).toBe(1);
  expect([...fixture.state.todo.pools]).toEqual([]);
});
