import { seededRandom, systemClock } from "@nodeyard/runtime";
import { createMemoryTree, FenceLost, heldLock } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { createUnder } from "../src/control/records.ts";

/** Simulated, seeds 102 and 130: a session that ended just before was taken for an error that nobody expected. */
test("a record that is made under a lock which went with its session is given up, not unexpected", async () => {
  const tree = createMemoryTree({ clock: systemClock, random: seededRandom(1) }).connect();
  await tree.create("/lock");
  const held = heldLock(tree, "/lock", "/lock/gone__lock__0000000000", 1);
  const made = createUnder({ tree }, held, { op: "create", path: "/record" });
  await expect(made).rejects.toBeInstanceOf(FenceLost);
  expect(await tree.stat("/record")).toBeUndefined();
  await expect(
    createUnder({ tree }, heldLock(tree, "/lock", "/lock", 1), { op: "create", path: "/record" }),
  ).resolves.toBe("/record");
  await tree.close();
});
