import type { Driver } from "@nodeyard/driver";
import { INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import type { AppliedWrite, CallInfo } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const POOLS = "/nodepool/components/pool";

const isPoolCreate = (write: AppliedWrite) =>
  write.ops.some((op) => op.op === "create" && op.path.startsWith(`${POOLS}/`));

const isAccept = (write: AppliedWrite) =>
  write.ops.some(
    (op) =>
      op.op === "set" &&
      /^\/nodepool\/requests\/./.test(op.path) &&
      JSON.parse(Buffer.from(op.data).toString()).state === "pending",
  );

/** Each acceptance must find a component of its own session. */
function expectRegisteredBeforeAccepting(world: World): number {
  const registered = new Set<bigint>();
  let accepts = 0;
  for (const write of world.cluster.log) {
    if (isPoolCreate(write)) registered.add(write.session);
    if (!isAccept(write)) continue;
    accepts++;
    expect(registered.has(write.session)).toBe(true);
  }
  return accepts;
}

/** A driver whose `open` for one provider takes as long as it is told to. */
function slow(provider: string, ms: number, world: World): (driver: Driver) => Driver {
  return (driver) => ({
    ...driver,
    open: async (config, context) => {
      if (config.name === provider)
        await new Promise<void>((resolve) => void world.clock.setTimer(ms, resolve));
      return driver.open(config, context);
    },
  });
}

describe("components are registered per pool before the first accept", () => {
  test("also when another provider is ready while this one still registers", async () => {
    const world = new World();
    world.fault = ({ path }) => (path.startsWith(`${POOLS}/`) ? { delayMs: 3_000 } : undefined);
    const ids = [await world.ask(), await world.ask()];
    const providers = [fakeProvider("one"), fakeProvider("two"), fakeProvider("three")];
    await world.start("a", launcherConfig(providers), { wrap: slow("two", 1_000, world) });
    for (const id of ids) await world.fulfilled(id);
    expect(expectRegisteredBeforeAccepting(world)).toBe(2);
  });

  test("a provider that is slow to open, or never does, delays no other", async () => {
    const world = new World();
    const providers = [fakeProvider("one"), fakeProvider("stuck")];
    const { starting, log } = world.launch("a", launcherConfig(providers), {
      wrap: slow("stuck", 10_000_000, world),
    });
    await world.fulfilled(await world.ask(), 5_000);
    await world.settle(starting, 120_000);
    expect(log.lines.filter(({ level }) => level === "error")[0]?.facts).toMatchObject({ provider: "stuck" });
  });

  test("and none is repeated for a pool that has left since", async () => {
    const world = new World();
    const id = await world.ask();
    // Locked before: the lock comes first, then the acceptance.
    await world.folder(paths.requestLock(id));
    let lost = 0;
    let broken = true;
    // Check of the contender, then the record.
    const accepts = ({ ops }: CallInfo) => ops.length === 2 && ops[1]!.path === paths.request(id);
    world.fault = (call) => (broken && accepts(call) && ++lost > 0 ? "lose-request" : undefined);
    const { launcher } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.until("its acceptance is lost", () => lost > 0);
    const reloading = launcher.reconfigure(launcherConfig([]));
    await world.until("its pool has left", () => world.children(POOLS).length === 0);
    expect(world.children(paths.requestLock(id))).toHaveLength(1);
    broken = false;
    await world.settle(reloading);
    await world.until("it lets go", () => world.children(paths.requestLock(id)).length === 0);
    expect(world.request(id)?.state).toBe("requested");
    expect(world.cluster.log.filter(isAccept)).toEqual([]);
  });

  test("and none whose lock was asked for between two sessions", async () => {
    const world = new World();
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]));
    // Locked before: the lock comes second, after an answer that is read with the news that the connection is gone.
    const parent = "/nodepool/requests-lock/100-0000000000";
    await world.folder(parent);
    let tries = 0;
    world.fault = ({ path, kind }) => {
      if (kind === "write" && path === parent && ++tries === 1) {
        tree.freeze();
        world.clock.setTimer(15_000, () => tree.thaw());
      }
      return kind === "write" && path.startsWith(`${POOLS}/`) ? { delayMs: 3_000 } : undefined;
    };
    const id = await world.ask();
    expect(paths.requestLock(id)).toBe(parent);
    await world.fulfilled(id);
    expect(tries).toBeGreaterThan(1);
    expect(tree.session().epoch).toBe(2);
    expect(expectRegisteredBeforeAccepting(world)).toBe(1);
  });

  test("and again first thing after a lost session, whatever waits", async () => {
    const world = new World();
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.fulfilled(await world.ask());
    let losses = 6;
    world.fault = ({ path, kind }) =>
      kind === "write" && path.startsWith(`${POOLS}/`) && losses-- > 0 ? "lose-request" : undefined;
    tree.expire();
    const ids = [await world.ask(), await world.ask()];
    for (const id of ids) await world.fulfilled(id);
    expect(losses).toBeLessThan(1);
    expect(expectRegisteredBeforeAccepting(world)).toBe(3);
    expect(world.children(POOLS)).toHaveLength(1);
  });

  test("a session that is lost while the launcher starts only delays it", async () => {
    for (const after of [5, 12, 20, 30, 45, 60]) {
      const world = new World();
      const { tree } = world.launch("a", launcherConfig([fakeProvider()]));
      await world.run(after);
      tree.expire();
      await world.fulfilled(await world.ask());
      expectRegisteredBeforeAccepting(world);
    }
  });

  test("also one that is lost between two tries to announce the launcher, however the process missed it", async () => {
    for (const missed of ["suspended", "cut off"]) {
      const world = new World();
      let tries = 0;
      world.fault = ({ path, kind }) => {
        if (kind !== "write" || !path.startsWith("/nodeyard/members/") || ++tries > 2) return undefined;
        if (tries === 1) return "lose-reply";
        // The second try finds what the first one did, and goes on in another session.
        if (missed === "suspended") tree.freeze();
        else tree.disconnect(true);
        world.clock.setTimer(15_000, () => (missed === "suspended" ? tree.thaw() : tree.reconnect()));
        return undefined;
      };
      const { tree, starting } = world.launch("a", launcherConfig([fakeProvider()]));
      await world.settle(starting);
      expect(tries).toBeGreaterThan(2);
      expect(tree.session().epoch).toBe(2);
      expect(world.children("/nodeyard/members")).toEqual([`a-${tree.session().id.toString(16)}`]);
      await world.fulfilled(await world.ask());
      expectRegisteredBeforeAccepting(world);
    }
  });

  test("once each, also when replies are lost and sessions end in the midst of it", async () => {
    const world = new World();
    let losses = 3;
    world.fault = ({ path, kind }) =>
      kind === "write" && path.startsWith("/nodepool/components/") && losses-- > 0 ? "lose-reply" : undefined;
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]));
    expect(losses).toBeLessThan(1);
    expect(world.children(POOLS)).toHaveLength(1);
    for (let round = 0; round < 4; round++) {
      losses = 1;
      tree.expire();
      await world.run(round * 45);
      tree.expire();
      await world.run(10_000);
      expect(world.children(POOLS)).toHaveLength(1);
      expect(world.children("/nodepool/components/launcher")).toHaveLength(1);
    }
  });
});

describe("the registry", () => {
  test("components of several kinds with one name are several", async () => {
    const world = new World();
    // The first pool and the first launcher of a host both are called <host>0000000000.
    const { launcher } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.put("/nodepool/components/builder/a0000000000", { kind: "builder", state: "stopped" });
    await world.until("three are seen", () => launcher.view.components.size === 3, 2_000);
    await world.settle(world.other.delete("/nodepool/components/builder/a0000000000"));
    const id = await world.ask({ node_types: ["nobody-has-it"] });
    await world.until("it failed, by our pool", () => world.request(id)?.state === "failed");
    expect(world.request(id)!.declined_by).toHaveLength(1);
  });

  test("`paused` tells when we skip, also after lost replies", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider("cloud", {}, { "max-servers": 1 })]));
    const component = `${POOLS}/${world.children(POOLS)[0]}`;
    const paused = () => world.json(component)?.paused;
    let losses = 0;
    world.fault = ({ path, kind }) =>
      kind === "write" && path === component && losses-- > 0 ? "lose-reply" : undefined;
    for (let round = 0; round < 3; round++) {
      losses = 1;
      const first = await world.ask();
      const { nodes } = await world.fulfilled(first);
      const second = await world.ask();
      await world.until("paused", () => paused() === true);
      losses = 1;
      await world.settle(world.other.delete(paths.request(second)));
      await world.until("not paused", () => paused() === false);
      await world.settle(world.other.delete(paths.request(first)));
      const [node] = nodes as string[];
      await world.put(paths.node(node!), { ...world.node(node!), state: "used" });
      await world.until("the node is gone", () => world.node(node!) === undefined);
    }
  });

  test("requests that everyone declined are judged again when the registry changes", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const python = await world.pythonPool("p", []);
    const id = await world.ask({ node_types: ["nobody-has-it"] });
    await world.until("ours declined", () => (world.request(id)?.declined_by as string[])?.length === 1);
    await world.run(5_000);
    expect(world.request(id)?.state).toBe("requested");
    await world.settle(world.other.delete(python));
    await world.until("it failed", () => world.request(id)?.state === "failed", 5_000);
  });

  test("while it is not seen whole, no request is failed by it", async () => {
    const world = new World();
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]));
    tree.disconnect(true);
    // This pool could say yes, and is registered while we cannot see it.
    await world.pythonPool("p", ["only-python"]);
    const id = await world.ask({ node_types: ["only-python"] });
    world.fault = ({ path, kind }) =>
      kind !== "write" && path.startsWith("/nodepool/components") ? { delayMs: 4_000 } : undefined;
    tree.reconnect();
    await world.run(20_000);
    expect(world.request(id)?.state).toBe("requested");
  });
});

describe("a new configuration", () => {
  test("never leaves a moment without a pool, in which others would fail a request", async () => {
    const world = new World();
    await world.start(
      "b",
      launcherConfig([
        fakeProvider(
          "other",
          {},
          { labels: [{ name: "small", "cloud-image": "image", "flavor-name": "f" }] },
        ),
      ]),
    );
    const { launcher } = await world.start("a", launcherConfig([fakeProvider("cloud")]), {
      wrap: slow("cloud", 2_000, world),
    });
    const reloading = launcher.reconfigure(launcherConfig([fakeProvider("cloud", { "launch-retries": 7 })]));
    await world.run(500);
    const id = await world.ask({ node_types: ["large"] });
    await world.settle(reloading);
    await world.fulfilled(id);
    expect(world.children(POOLS)).toHaveLength(2);
    await world.settle(launcher.reconfigure(launcherConfig([])));
    expect(world.children(POOLS)).toHaveLength(1);
  });

  test("takes a pool out of the registry for good, also when the replies are lost", async () => {
    const world = new World();
    const { launcher } = await world.start(
      "a",
      launcherConfig([fakeProvider("cloud"), fakeProvider("more")]),
    );
    let losses = 3;
    world.fault = ({ path, kind }) =>
      kind === "write" && path.startsWith(`${POOLS}/`) && losses-- > 0 ? "lose-request" : undefined;
    await world.settle(launcher.reconfigure(launcherConfig([fakeProvider("cloud")])));
    await world.run(5_000);
    expect(losses).toBeLessThan(1);
    expect(world.children(POOLS)).toHaveLength(1);
  });

  test("does not break off the launches under way", async () => {
    const world = new World({
      latency: { ...INSTANT.latency, create: { minMs: 3_000, maxMs: 3_000 } },
    });
    const { launcher, counters } = await world.start("a", launcherConfig([fakeProvider("cloud")]));
    const id = await world.ask();
    await world.run(500);
    await world.settle(
      launcher.reconfigure(launcherConfig([fakeProvider("cloud", { "launch-retries": 7 })])),
    );
    await world.fulfilled(id);
    await world.until("the launch is counted", () => counters.value("launcher.launches") > 0);
    expect(counters.value("launcher.launches", { result: "ready" })).toBe(1);
    expect(counters.value("launcher.launches")).toBe(1);
  });
});
