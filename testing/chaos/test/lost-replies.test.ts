import { systemRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../zookeeper/index.ts";
import { startReplyDroppingProxy } from "../lost-replies/reply-dropping-proxy.ts";
import { until } from "../patience.ts";
import { onZooKeeper } from "../site.ts";
import { checkCloud, checkLog, excerpt, leftovers } from "../verdict.ts";
import { Zuul } from "../zuul.ts";

/** One request takes at most this many writes. */
const MOST = 40;

describe.skipIf(requireZooKeeper())("the reply of a write is lost", () => {
  test("of each write in a request's life once: each life ends as asked, and nothing is left", async () => {
    const zookeeper = await startZooKeeper();
    const dropper = await startReplyDroppingProxy(zookeeper);
    const site = onZooKeeper(zookeeper, { launcherPort: dropper.port, latency: "{}" });
    const launcher = site.start();
    try {
      expect(await launcher.printed(site.ready), launcher.errors).toBe(true);
      const tree = await site.connect();
      const zuul = new Zuul(tree, { ...systemRandom, float: () => 0.5 });
      const clean = () =>
        until(
          async () => (await leftovers(tree)).length === 0,
          60_000,
          async () => (await leftovers(tree)).join(", "),
        );
      let dropped = 0;
      for (let n = 1; n <= MOST; n++) {
        dropper.arm(n);
        const asked = await zuul.life(["small", "large"]).catch((error: Error) => {
          throw new Error(`write ${n}: ${error.message}\n${excerpt(site.log(), undefined, 40).join("\n")}`);
        });
        expect(asked.result, `write ${n}`).toBe("used");
        await clean().catch((error: Error) => {
          throw new Error(`write ${n}: left over: ${error.message}\n${launcher.errors.slice(-2_000)}`);
        });
        if (!dropper.dropped) break;
        dropped++;
      }
      expect(dropped).toBeGreaterThanOrEqual(10);
      expect(dropped).toBeLessThan(MOST);
      const check = checkLog(site.log());
      expect([check.nodes.size, check.requests.size]).toEqual([0, 0]);
      expect([...checkCloud(site.cloud)]).toEqual([]);
      await tree.close();
    } finally {
      await launcher.signal("SIGKILL");
      await dropper.close();
      await site.close();
    }
  });
});
