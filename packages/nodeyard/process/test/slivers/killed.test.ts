import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { Machine } from "../../../../../testing/slivers/index.ts";
import { Site } from "../../../cli/test/nodeyard.ts";

interface Lease {
  readonly id: string;
}

/** A launcher as people run it, and a real sliver manager whose slivers are in memory. */
describe("a launcher with slivers is killed", () => {
  const machine = new Machine();
  let site: Site;
  beforeAll(() => machine.start());
  afterAll(() => machine.stop());
  beforeEach(() => {
    site = new Site("");
    const provider = {
      name: "lab",
      driver: "sliver",
      "signing-keys": machine.keysFile,
      machines: [{ name: machine.name, socket: machine.socket }],
      pools: [
        {
          name: "main",
          labels: [{ name: "small", "cpu-guarantee": 100, disk: 64, "host-key-checking": false }],
        },
      ],
    };
    // A node that was made for a request that has ended is free for others; here for a second.
    const labels = [{ name: "small", "max-ready-age": 1 }];
    writeFileSync(site.config, JSON.stringify({ labels, providers: [provider] }));
  });
  afterEach(() => site.close());

  // At the n-th look of the manager at its machine, after the launcher's document: between any two of its steps.
  test.each([1, 3])(
    "after look %i at what it asked for: everything is given back, and nothing is left",
    async (looks) => {
      const first = await site.up();
      const before = (await machine.status()).sequence;
      await site.run("request", "small:3");
      await machine.until(({ sequence, slivers }) => slivers.length > 0 && sequence >= before + looks);
      await first.kill("SIGKILL");
      await site.up();
      const leases = await site.json<Lease[]>("list", "--leases");
      expect(leases).toHaveLength(1);
      expect((await site.run("release", leases[0]!.id)).code).toBe(0);
      const end = await machine.until(
        ({ slivers, unlisted }) => slivers.length === 0 && unlisted.length === 0,
      );
      expect(end.refused).toEqual([]);
      await expect.poll(() => site.json("list"), { timeout: patient(60_000) }).toEqual([]);
    },
  );

  test("while they are ended: the next one ends what is left, and hands out again", async () => {
    const first = await site.up();
    const granted = await site.json<{ readonly lease: string }>("request", "small:3", "--wait");
    await site.run("release", granted.lease);
    await machine.until(({ slivers }) => slivers.length < 3);
    await first.kill("SIGKILL");
    await site.up();
    await machine.until(({ slivers, unlisted }) => slivers.length === 0 && unlisted.length === 0);
    const again = await site.json<{ readonly lease: string; readonly nodes: readonly unknown[] }>(
      "request",
      "small:2",
      "--wait",
    );
    expect(again.nodes).toHaveLength(2);
    expect((await machine.status()).slivers).toHaveLength(2);
    const words = ["-sS", "--unix-socket", join(site.state, "http.sock"), "http://x/metrics"];
    const page = execFileSync("curl", words, { encoding: "utf8" });
    expect(page).toContain(`nodeyard_sliver_machine_up{provider="lab",machine="${machine.name}"} 1`);
  });
});
