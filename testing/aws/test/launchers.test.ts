import { describe, expect, test } from "vitest";
import { patient } from "../../patience.ts";
import { requireSshd } from "../../sshd/index.ts";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import { requireAws } from "../index.ts";
import { crowd } from "../launchers.ts";

describe.skipIf(requireAws() ?? requireZooKeeper() ?? requireSshd())(
  "several launchers at AWS's wire",
  () => {
    test("a crowd with a quota, a full zone and a launcher that is killed: all served, none doubled, none left, few calls", async () => {
      const plan = { requests: 20, launchers: 2, quota: 12, kills: [0.4], limitMs: patient(150_000) };
      const { machines, nodes, mostAtOnce, calls, ...rest } = await crowd(plan);
      expect(rest).toMatchObject({ served: 20, others: [], left: [] });
      expect(nodes).toBe(machines);
      expect(mostAtOnce).toBeLessThanOrEqual(12);
      // A full zone costs each launcher a few calls until all know of it, however many machines follow.
      expect(calls.full).toBeLessThan(20);
      expect(calls.run - calls.full).toBeLessThanOrEqual(machines * 1.1);
      expect(calls.terminate).toBeLessThanOrEqual(machines);
      // One listing serves all that wait; each of them alone would look many times.
      expect(calls.listings).toBeLessThan(machines * 20);
    });
  },
);
