import { describe, expect, it } from "vitest";
import { requireZooKeeper } from "../../testing/zookeeper/index.ts";
import { burst, drain } from "../lib/burst.ts";
import { launcherConfig } from "../lib/config.ts";
import { useNodes } from "../lib/consumer.ts";
import { startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { nodesLeft, Requester } from "../lib/requester.ts";
import { startServer } from "../lib/server.ts";
import { startTap } from "../lib/tap.ts";

describe.skipIf(requireZooKeeper())("the harness around a real launcher", () => {
  it("requests, measures, uses and returns nodes", async () => {
    await using server = await startServer();
    await using tap = await startTap(server.address);
    await using launcher = await startLauncher(server.client, launcherConfig(tap), 1);
    const requester = await Requester.open(server.client);

    const one = await burst(requester, launcher, 20);
    expect(new Set(one.results.flatMap(({ nodes }) => nodes)).size).toBe(20);
    expect(one.perSecond).toBeGreaterThan(0);
    expect(tap.counts().packets).toBeGreaterThan(0);
    expect(launcher.peakMemoryMib()).toBeGreaterThan(1);
    await drain(server, requester, one);

    const [request] = await requester.fulfilled(await requester.submit(LABEL, 1), 30_000);
    await useNodes(server.client, request!);
    await nodesLeft(server.client, 0, 30_000);
  });

  it("says why the launcher did not start", async () => {
    await using server = await startServer();
    await expect(startLauncher(server.client, "labels: 3", 1)).rejects.toThrow(
      /the launcher ended with \d+:\n.*labels/s,
    );
  });
});
