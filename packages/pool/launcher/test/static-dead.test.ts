import { DriverError, type Scanner } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { staticProvider } from "./rig.ts";
import { launcherConfig, World } from "./rules/world.ts";

/** A host that answers or not. */
function board(): { alive: boolean; readonly scan: Scanner } {
  const host = {
    alive: true,
    scan: {
      scan: async ({ host: address }: Parameters<Scanner["scan"]>[0]) => {
        if (!host.alive) throw new DriverError("timeout", "it does not answer");
        return { address, family: 4 as const, hostKeys: ["ssh-ed25519 AAAA"] };
      },
    },
  };
  return host;
}

const config = launcherConfig([staticProvider([{ name: "board", labels: ["small"] }])]);

test("a host that does not answer is not registered, and is once it answers", async () => {
  const world = new World();
  const host = board();
  host.alive = false;
  await world.start("a", config, { scan: host.scan });
  await world.run(120_000);
  expect(world.nodes()).toEqual([]);
  host.alive = true;
  const registered = await world.until("it is registered", () => world.nodes()[0], 120_000);
  expect(registered).toMatchObject({ state: "ready", hostname: "board", host_keys: ["ssh-ed25519 AAAA"] });
});

test("a host that no longer answers when it is to be given is taken out, and given once it answers again", async () => {
  const world = new World();
  const host = board();
  await world.start("a", config, { scan: host.scan });
  const before = await world.until("it is registered", () => world.nodes()[0]);
  host.alive = false;
  const id = await world.ask();
  await world.run(30_000);
  expect(world.request(id)?.state).not.toBe("fulfilled");
  expect(world.node(before.id)?.state).not.toBe("ready");
  host.alive = true;
  const { nodes } = await world.fulfilled(id, 180_000);
  expect(nodes).not.toContain(before.id);
});

test("when the last host that answered is gone, its provider is failing at once, and well again when one answers", async () => {
  const world = new World();
  const host = board();
  const { launcher } = await world.start("a", config, { scan: host.scan });
  await world.until("it is registered", () => world.nodes()[0]);
  const standing = () => launcher.view.standings.get("provider/lab");
  await world.until("it is served", () => standing()?.state === "good");
  host.alive = false;
  const id = await world.ask();
  await world.until("it shows", () => standing()?.state === "failing", 30_000);
  expect(standing()).toMatchObject({ code: "provider.no-hosts", because: expect.stringContaining("board") });
  host.alive = true;
  await world.fulfilled(id, 180_000);
  await world.until("it is well", () => standing()?.state === "good", 120_000);
});
