import { expect, test } from "vitest";
import { Desk, policy, pool } from "../scheduler/world.ts";

test("rule 8: a pool that leaves while requests wait for it leaves no turn that asks for another one for ever", () => {
  const one = policy([pool({ limits: { instances: 1 } })]);
  const desk = new Desk(one);
  desk.request("100-0000000000");
  for (let at = 1; at < 4; at++) desk.request(`100-000000000${at}`);
  // The desk turns until nothing is left to do, and throws when that never comes.
  desk.tell({ type: "policy", policy: policy([pool({ provider: "other" })]) });
  expect(desk.state.pools.size).toBe(1);
  expect([...desk.state.todo.pools]).toEqual([]);
});
