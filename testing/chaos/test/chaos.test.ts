import { describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import { campaign } from "../campaign.ts";
import type { StoreName } from "../site.ts";

const KILLS = 10;

async function survives(store: StoreName, seed: number): Promise<void> {
  const said: string[] = [];
  const result = await campaign({ store, kills: KILLS, seed, onKill: (what) => said.push(what) });
  // The campaign checks the rules against the raw logs; here only that something happened at all.
  // How many kills happen at their named effect before the deadline depends on the machine's speed.
  expect(result.atEffects, said.join("\n")).toBeGreaterThan(0);
  expect(result.used).toBeGreaterThan(0);
  expect(result.leases).toBeGreaterThan(0);
  if (store === "ensemble") expect(result.leaders).toBeGreaterThan(0);
}

describe(`kill -9 of the launcher ${KILLS} times, a launch and a delete in flight, requests arriving`, () => {
  test("the embedded tree, in the same process", () => survives("embedded", 1));
  test.skipIf(requireZooKeeper())("ZooKeeper", () => survives("zookeeper", 2));
  test.skipIf(requireZooKeeper())("an ensemble whose leader dies too", () => survives("ensemble", 3));
});
