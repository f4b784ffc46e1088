import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";
import { batch } from "../../src/isolation/network/edge/batch.ts";
import { GATEWAY, Network } from "../../src/isolation/network/edge/network.ts";
import { cableCommands, frameCommands, shapeCommands } from "../../src/isolation/network/shape.ts";
import { whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf, inSliver } from "./machine/slivers.ts";
import { HOST, SINK, WORLD, WORLD_DEVICE } from "./machine/world.ts";
import { worldSite } from "./machine/world-site.ts";

/** Seconds in which what is refused would be there, and what is let through is there on a machine that is busy with other suites. */
const REFUSED = 2;
const LET_THROUGH = 20;
const POLLED = { timeout: patient(60_000) };

describe.skipIf(whyNot() !== undefined)("a sliver that may reach the world", () => {
  const site = worldSite({ outbound: { device: WORLD_DEVICE }, inbound: { device: WORLD_DEVICE } });
  let backEnd: LxcBackEnd;
  beforeAll(() => {
    backEnd = site.real.backEnd("container");
  });

  test("reaches it under the host's address, and neither another sliver nor what is refused", async () => {
    await bringUp(backEnd, configsOf(site.real.key, { 1: {}, 2: {} }));
    const hello = (host: string, port: number, seconds = REFUSED) =>
      `timeout ${seconds} bash -c 'exec 3<>/dev/tcp/${host}/${port}; echo hello >&3' 2>/dev/null && echo there || echo not there`;
    expect(await inSliver(site.real, 1, hello(WORLD, SINK, LET_THROUGH))).toBe("there");
    await expect.poll(() => site.world.count().peers, POLLED).toEqual([HOST]);
    expect(await inSliver(site.real, 1, hello(addressOf(2), 22))).toBe("not there");
    expect(await inSliver(site.real, 1, hello("169.254.169.254", 80))).toBe("not there");
    // The world cannot begin anything, even where it knows the way.
    execFileSync("ip", ["-n", "ny-world", "route", "add", "10.213.0.0/16", "via", HOST]);
    const probe = ["-c", `exec 3<>/dev/tcp/${addressOf(1)}/22 && head -1 <&3`];
    const enter = ["netns", "exec", "ny-world", "timeout", "2", "bash", ...probe];
    expect(() => execFileSync("ip", enter, { stdio: ["ignore", "pipe", "ignore"] })).toThrow();
    execFileSync("ip", ["-n", "ny-world", "route", "del", "10.213.0.0/16"]);
  });

  test("leaves no way out to addresses of its range that nobody has", async () => {
    await bringUp(backEnd, configsOf(site.real.key, { 1: {} }));
    const way = (address: string) => spawnSync("ip", ["route", "get", address]).status;
    expect(way("10.213.0.1")).toBe(0);
    expect(way("10.213.77.7")).not.toBe(0);
  });

  test("has the host's interface forward as long as there are slivers, for them alone", async () => {
    const forwards = () => readFileSync(`/proc/sys/net/ipv4/conf/${WORLD_DEVICE}/forwarding`, "utf8").trim();
    expect(forwards()).toBe("0");
    await bringUp(backEnd, configsOf(site.real.key, { 1: {} }));
    expect(forwards()).toBe("1");
    expect(
      execFileSync("nft", ["list", "chain", "inet", "nodeyard-slivers", "forward"], { encoding: "utf8" }),
    ).toMatch(new RegExp(`iifname "${WORLD_DEVICE}" meta nfproto ipv4 ct state new .*drop`));
    await site.real.clear();
    expect(forwards()).toBe("0");
  });

  test("is logged in to from the world by its own port of the host, and by no other, and that goes with it", async () => {
    await bringUp(backEnd, configsOf(site.real.key, { 1: {}, 2: {} }));
    const banner = (port: number, seconds = REFUSED) => {
      const probe = ["-c", `exec 3<>/dev/tcp/${HOST}/${port} && head -1 <&3`];
      const enter = ["netns", "exec", "ny-world", "timeout", String(seconds), "bash", ...probe];
      try {
        return execFileSync("ip", enter, { stdio: ["ignore", "pipe", "ignore"], encoding: "utf8" });
      } catch {
        return "nobody";
      }
    };
    for (const index of [1, 2]) {
      const { published } = backEnd.account(index);
      expect(published).toBe(22_000 + index);
      expect(banner(published!, LET_THROUGH)).toMatch(/^SSH-2.0-/);
    }
    expect(banner(22_003)).toBe("nobody");
    // Slivers do not reach each other by it either.
    const other = `timeout 2 bash -c 'exec 3<>/dev/tcp/${HOST}/22002' 2>/dev/null && echo there || echo not there`;
    expect(await inSliver(site.real, 1, other)).toBe("not there");
    await site.real.clear();
    expect(banner(22_001)).toBe("nobody");
  });

  test("wherever the making of its cable was cut short, it can be made anew and taken away", async () => {
    const { signal } = new AbortController();
    const forwarding = join(site.real.folder, "forwarding");
    const network = new Network({ network: "10.213", link: 1_000_000_000, forwarding, clock: systemClock });
    const [config] = configsOf(site.real.key, { 9: {} });
    const names = namesOf(9, "10.213");
    const cable = cableCommands(names, GATEWAY);
    const queues = [...frameCommands(1_000_000_000), ...shapeCommands(names, config!.limits)];
    for (let cut = 0; cut <= cable.length + queues.length; cut++) {
      await network.remove(signal);
      await batch("ip", cable.slice(0, cut), signal);
      await batch("tc", queues.slice(0, Math.max(0, cut - cable.length)), signal);
      // As its manager finds it after a restart: a start that was interrupted is cleared away first.
      await network.disconnect(names, signal);
      expect(await network.cable(names), `cut after ${cut}`).toBeUndefined();
      await network.prepare(names, config!, signal);
      expect([...(await network.guarded(signal))], `cut after ${cut}`).toEqual([names.chain]);
      expect([...(await network.sent(signal)).keys()], `cut after ${cut}`).toEqual([9]);
      await network.disconnect(names, signal);
    }
    await network.remove(signal);
  });

  test("has so many connections at a time and no more, also after a change", async () => {
    await bringUp(backEnd, configsOf(site.real.key, { 1: { connections: 5 } }));
    const flood = (count: number) =>
      `for i in $(seq ${count}); do timeout 6 bash -c 'exec 3<>/dev/tcp/${WORLD}/${SINK}; sleep 5' 2>/dev/null & done; wait`;
    const before = site.world.count().open;
    expect(before).toBeLessThanOrEqual(5);
    await inSliver(site.real, 1, flood(30));
    await expect.poll(() => site.world.count().open, POLLED).toBe(5);
    const { signal } = new AbortController();
    for (const config of configsOf(site.real.key, { 1: { connections: 12 } }))
      await backEnd.configure(config, signal);
    await inSliver(site.real, 1, flood(30));
    await expect.poll(() => site.world.count().open, POLLED).toBe(12);
  });
});
