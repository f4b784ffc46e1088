import { DriverError } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

test("a machine whose scan fails is not delivered; the next attempt's is, with its host keys", async () => {
  const world = new World();
  const scanned: number[] = [];
  const named: unknown[] = [];
  const scan = {
    scan: async ({ host }: { readonly host: string }) => {
      scanned.push(world.cloud.inspect().length);
      // Also one that was up at once: a launcher may die while it waits for host keys.
      named.push(world.nodes().at(-1)?.external_id === world.cloud.inspect().at(-1)?.id);
      if (scanned.length === 1) throw new DriverError("timeout", "no answer");
      return { address: host, family: 4 as const, hostKeys: ["ssh-ed25519 AAAA"] };
    },
  };
  // As a cloud that does not know its machines' host keys: they are scanned for.
  const wrap = withMethods((inner) => ({
    async *create(order, step) {
      const { hostKeys: _, ...machine } = yield* inner.create(order, step);
      return machine;
    },
  }));
  // The second try fails before there is anything to scan; the third works.
  await world.start("a", launcherConfig([fakeProvider("cloud", { "launch-retries": 3 })]), { wrap, scan });
  const id = await world.ask();
  await world.until("the first scan", () => scanned.length === 1);
  world.cloud.faults.createFails = 1;
  const [node] = (await world.fulfilled(id)).nodes as [string];
  expect(world.node(node)?.host_keys).toEqual(["ssh-ed25519 AAAA"]);
  expect(world.cloud.faults.createFails).toBe(0);
  expect(scanned).toEqual([1, 1]);
  expect(named).toEqual([true, true]);
});
