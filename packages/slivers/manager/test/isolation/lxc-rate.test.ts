import { describe, expect, test } from "vitest";
import { whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";
import { SINK, SOURCE, WORLD, WORLD_DEVICE } from "./machine/world.ts";
import { worldSite } from "./machine/world-site.ts";

/** Seconds that traffic is measured. */
const MEASURED = 4;

describe.skipIf(whyNot() !== undefined)("the traffic of a sliver", () => {
  const site = worldSite({ outbound: { device: WORLD_DEVICE } });

  test("sends and gets at its rate, which a loan changes while it runs", async () => {
    const { signal } = new AbortController();
    const backEnd = site.real.backEnd("container");
    await bringUp(backEnd, configsOf(site.real.key, { 1: { netCap: 8_000_000, netDay: 0 } }));
    // No budget of a day asks for it.
    expect((await backEnd.inspect(signal))[0]).not.toHaveProperty("sent");
    const started = site.world.count().bytes;
    for (const megabits of [8, 24]) {
      for (const config of configsOf(site.real.key, { 1: { netCap: megabits * 1_000_000 } }))
        await backEnd.configure(config, signal);
      const before = site.world.count().bytes;
      await inSliver(
        site.real,
        1,
        `timeout ${MEASURED} bash -c 'cat /dev/zero >/dev/tcp/${WORLD}/${SINK}' 2>/dev/null; true`,
      );
      await settle();
      const up = ((site.world.count().bytes - before) * 8) / MEASURED / 1e6;
      expect(up, `up ${megabits}`).toBeGreaterThan(0.7 * megabits);
      expect(up, `up ${megabits}`).toBeLessThan(1.2 * megabits);
      const got = await inSliver(
        site.real,
        1,
        `timeout ${MEASURED} cat </dev/tcp/${WORLD}/${SOURCE} 2>/dev/null | wc -c`,
      );
      const down = (Number(got) * 8) / MEASURED / 1e6;
      expect(down, `down ${megabits}`).toBeGreaterThan(0.7 * megabits);
      expect(down, `down ${megabits}`).toBeLessThan(1.2 * megabits);
    }
    // What its day is counted by: all that it has sent, with the heads of packets and what was sent to us.
    const [{ sent } = {}] = await backEnd.inspect(signal);
    expect(sent?.bytes).toBeGreaterThan(site.world.count().bytes - started);
    expect(sent?.bytes).toBeLessThan(1.2 * (site.world.count().bytes - started) + 2_000_000);
  });
});

/** Until the world has counted what came. */
function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}
