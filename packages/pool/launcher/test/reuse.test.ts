import type { Driver, Scanner } from "@nodeyard/driver";
import { leasePath, paths, remarkPath } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import { describe, expect, test } from "vitest";
import type { CheckOrder } from "../src/index.ts";
import { handles, leaseOf } from "./rules/lease-world.ts";
import { fakeProvider, type Json, launcherConfig, type MemberOptions, World } from "./rules/world.ts";

interface Reuse {
  readonly [key: string]: unknown;
}

function provider(reuse: Reuse | undefined, pool: object = {}) {
  const label = { name: "small", "cloud-image": "image", "flavor-name": "Fake Flavor" };
  const small = reuse === undefined ? label : { ...label, reuse: { check: ["/bin/check", "-v"], ...reuse } };
  return fakeProvider("cloud", {}, { labels: [small, { ...label, name: "large" }], ...pool });
}

type Answer = string | undefined | "waits";

/** A launcher whose label `small` is used again, and a check that answers what `answers` says: undefined is yes. */
async function started(
  { reuse = {}, pool = {} }: { readonly reuse?: Reuse; readonly pool?: object } = {},
  options: Omit<MemberOptions, "check"> = {},
) {
  const world = new World();
  const checks: { readonly order: CheckOrder; readonly killed: () => boolean; end(why?: string): void }[] =
    [];
  const answers: Answer[] = [];
  const check = (order: CheckOrder, signal: AbortSignal) =>
    new Promise<string | undefined>((resolve) => {
      checks.push({ order, killed: () => signal.aborted, end: resolve });
      const answer = answers.shift();
      if (answer !== "waits") resolve(answer);
    });
  const config = launcherConfig([provider(reuse, pool)]);
  const member = await world.start("a", config, { ...options, check });
  const events = (name: string) => member.journal.events.filter(({ event }) => event === name);
  const machines = () => world.cloud.inspect().length;
  /** Asks for a node, uses it and gives it back; returns its id once it is something else than `used`. */
  const used = async (fields: Json = {}) => {
    const request = await world.ask({ tenant_name: "t1", ...fields });
    const [id = ""] = (await world.fulfilled(request)).nodes as string[];
    await world.use(request);
    return id;
  };
  const free = (id: string) =>
    world.until(`${id} is free`, () => {
      const node = world.node(id);
      return node?.state === "ready" && node.allocated_to === null && node;
    });
  const gone = (id: string) =>
    world.until(`${id} and its machine are gone`, () => {
      const isThere = world.cloud.inspect().some(({ tag }) => tag?.nodeId === id);
      return world.node(id) === undefined && !isThere;
    });
  return { world, member, config, checks, answers, events, machines, used, free, gone, check };
}

const noteOf = (node: Json | undefined) =>
  (node?.driver_data as { nodeyard?: { reuse?: Json; returned?: string } } | null | undefined)?.nodeyard;

describe("a node whose label says so", () => {
  test("is checked when it is given back, and then free without a trace of its user; so often as the label says", async () => {
    const { member, checks, events, machines, used, free, gone } = await started({
      reuse: { times: 2 },
    });
    const first = await used({ requestor_data: { secret: "x" } });
    const node = await free(first);
    expect(checks.map(({ order }) => order)).toMatchObject([
      { command: ["/bin/check", "-v"], node: { id: first, interfaceIp: node.interface_ip } },
    ]);
    expect(node).toMatchObject({
      ...{ allocated_to: null, tenant_name: null, requestor: null, user_data: null },
      ...{ comment: null, hold_job: null, hold_expiration: null },
    });
    expect(noteOf(node)).toMatchObject({
      reuse: { times: 1, only: { tenant: "t1", client: "test" } },
    });
    expect(await used()).toBe(first);
    await free(first);
    expect(await used()).toBe(first);
    await gone(first);
    expect(checks).toHaveLength(2);
    expect(machines()).toBe(0);
    expect(events("node.checked").map(({ facts }) => facts.use)).toEqual([2, 3]);
    expect(events("node.claimed").map(({ facts }) => facts.use)).toEqual([2, 3]);
    const saved = member.counters
      .list()
      .filter(({ name }: { name: string }) => name === "launcher.launches_saved");
    expect(saved).toMatchObject([{ value: 2 }]);
  });

  for (const [what, answer] of [
    ["does not pass", "its check ended with status 1: full disk"],
    ["is not checked in time", "waits"],
  ] as const)
    test(`and that ${what} is deleted`, async () => {
      const { world, answers, checks, events, used, gone } = await started({
        reuse: { "check-timeout": 5 },
      });
      answers.push(answer);
      const id = await used();
      await gone(id);
      expect(checks).toHaveLength(1);
      if (answer === "waits") expect(checks[0]!.killed()).toBe(true);
      expect(events("node.check-failed")).toMatchObject([
        { node: id, facts: { why: expect.stringContaining("its check") } },
      ]);
      expect(world.nodes()).toEqual([]);
    });

  test("goes to nobody but its tenant and client, unless it is for all; others get new ones", async () => {
    const own = await started();
    const first = await own.used();
    await own.free(first);
    for (const other of [{ tenant_name: "t2" }, { requestor: "other" }, { tenant_name: null }]) {
      const id = await own.used(other);
      expect(id).not.toBe(first);
    }
    expect(await own.used()).toBe(first);
    const all = await started({ reuse: { for: "all" } });
    const shared = await all.used();
    await all.free(shared);
    expect(await all.used({ tenant_name: "t2", requestor: "other" })).toBe(shared);
  });

  test("makes room for who may not have it", async () => {
    const { used, free, gone } = await started({ pool: { "max-servers": 1 } });
    const first = await used();
    await free(first);
    expect(await used({ tenant_name: "t2" })).not.toBe(first);
    await gone(first);
  });

  test("is deleted while somebody else waits for its room, without a check", async () => {
    const { world, checks, gone } = await started({ pool: { "max-servers": 1 } });
    const request = await world.ask({ tenant_name: "t1" });
    const [id = ""] = (await world.fulfilled(request)).nodes as string[];
    const waiting = await world.ask({ tenant_name: "t2" });
    await world.run(100);
    await world.use(request);
    await world.fulfilled(waiting);
    await gone(id);
    expect(checks).toEqual([]);
  });

  test("ends when nobody takes it, and when it was there for its hours", async () => {
    const idle = await started({ reuse: { idle: 30 } });
    const first = await idle.used();
    await idle.free(first);
    await idle.world.run(29_000);
    expect(idle.world.node(first)).toBeDefined();
    await idle.gone(first);
    const old = await started({ reuse: { hours: 1, idle: 86_400 } });
    const second = await old.used();
    await old.free(second);
    await old.world.run(3_590_000);
    expect(await old.used()).toBe(second);
    await old.free(second);
    await old.gone(second);
    const spent = await started({ reuse: { hours: 1, idle: 86_400 } });
    const request = await spent.world.ask();
    const [third = ""] = (await spent.world.fulfilled(request)).nodes as string[];
    await spent.world.run(3_600_000);
    await spent.world.use(request);
    await spent.gone(third);
    expect(spent.checks).toEqual([]);
  });

  test("is not used again after a hold, nor when its user's session ended", async () => {
    const { world, checks, gone } = await started();
    const request = await world.ask();
    const [id = ""] = (await world.fulfilled(request)).nodes as string[];
    const lock = await world.lock(paths.nodeLock(id));
    const write = (fields: Json) => world.put(paths.node(id), { ...world.node(id), ...fields });
    await write({ state: "in-use" });
    await write({ state: "hold", hold_job: "t1 project job ref", comment: "autohold" });
    await write({ state: "used" });
    await world.settle(world.other.delete(lock));
    await gone(id);
    const next = await world.ask();
    const [second = ""] = (await world.fulfilled(next)).nodes as string[];
    const other = await world.lock(paths.nodeLock(second));
    await world.put(paths.node(second), { ...world.node(second), state: "in-use" });
    await world.settle(world.other.delete(other));
    await gone(second);
    expect(checks).toEqual([]);
  });

  for (const [verdict, again] of [
    ["ok", true],
    ["dirty", false],
    ["infra-failure", false],
  ] as const)
    test(`of a lease that its owner ends as ${verdict} is ${again ? "used again by the same owner" : "deleted"}`, async () => {
      const { world, checks, free, gone } = await started();
      const lease = async () => {
        const asked = { labels: ["small"], owner: "me", forMs: 60_000 };
        const { id } = await world.settle(askForNodes(handles(world), asked));
        await world.until("it is granted", () => leaseOf(world, id)?.state === "granted");
        return { id, node: (leaseOf(world, id)!.nodes as string[])[0]! };
      };
      const first = await lease();
      await world.settle(releaseLease(handles(world), first.id, { verdict }));
      if (!again) {
        await gone(first.node);
        return expect(checks).toEqual([]);
      }
      expect(noteOf(await free(first.node))?.returned).toBeUndefined();
      const second = await lease();
      expect(second.node).toBe(first.node);
      // What the first one said of the node is not said of this lease, which expires.
      await gone(first.node);
      expect(checks).toHaveLength(1);
    });

  test("of a lease that one launcher ended by its time is deleted, also where another one returns it, by whose clock some is left", async () => {
    const { world, checks, gone } = await started();
    const asked = { labels: ["small"], owner: "me", forMs: 60_000 };
    const { id } = await world.settle(askForNodes(handles(world), asked));
    await world.until("it is granted", () => leaseOf(world, id)?.state === "granted");
    const [node = ""] = leaseOf(world, id)!.nodes as string[];
    await world.put(leasePath(id), { ...leaseOf(world, id), state: "released", expired: true });
    await gone(node);
    expect(checks).toEqual([]);
  });

  test("on which its driver remarked something is deleted without a check: its cloud may take it back", async () => {
    const { world, checks, events, gone } = await started();
    const request = await world.ask({ tenant_name: "t1" });
    const [id = ""] = (await world.fulfilled(request)).nodes as string[];
    await world.put(remarkPath(id), { v: 1, at: 1, text: "the cloud takes it back" });
    await world.run(100);
    await world.use(request);
    await gone(id);
    expect(checks).toEqual([]);
    expect(events("node.check-failed")[0]?.facts.why).toContain("remarked");
  });

  test("is deleted when the settings by which it was launched are not those of its label any more, in use or free", async () => {
    const { world, member, checks, used, free, gone } = await started();
    const request = await world.ask();
    const [inUse = ""] = (await world.fulfilled(request)).nodes as string[];
    const idle = await used();
    await free(idle);
    const changed = provider({}, { "node-attributes": { rack: 1 } });
    await world.settle(member.launcher.reconfigure(launcherConfig([changed])));
    await gone(idle);
    await world.use(request);
    await gone(inUse);
    expect(checks).toHaveLength(1);
  });

  test("and that was launched before it said so is deleted", async () => {
    const { world, member, gone, checks } = await started();
    await world.settle(member.launcher.reconfigure(launcherConfig([provider(undefined)])));
    const request = await world.ask();
    const [id = ""] = (await world.fulfilled(request)).nodes as string[];
    await world.settle(member.launcher.reconfigure(launcherConfig([provider({})])));
    await world.use(request);
    await gone(id);
    expect(checks).toEqual([]);
  });

  test("that shows other host keys is deleted; those that it was launched with stay", async () => {
    let keys = ["ssh-ed25519 AAAA", "ssh-rsa AAAA"];
    const scan: Scanner = { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: keys }) };
    // The driver tells no keys, so that they are scanned at the launch, too.
    const wrap = (driver: Driver): Driver => ({
      ...driver,
      open: async (config, context) => {
        const opened = await driver.open(config, context);
        const create = opened.create.bind(opened);
        opened.create = async function* (order, step) {
          const { hostKeys: _, ...machine } = yield* create(order, step);
          return machine;
        };
        return opened;
      },
    });
    const { used, free, gone, events } = await started({}, { scan, wrap });
    const first = await used();
    keys = keys.toReversed();
    expect(await free(first)).toMatchObject({ host_keys: ["ssh-ed25519 AAAA", "ssh-rsa AAAA"] });
    expect(await used()).toBe(first);
    await free(first);
    keys = ["ssh-ed25519 BBBB", "ssh-rsa AAAA"];
    expect(await used()).toBe(first);
    await gone(first);
    expect(events("node.check-failed")[0]?.facts.why).toContain("host keys");
  });

  test("beside a launcher of another kind is deleted: that would give it to everybody", async () => {
    const { world, events, gone } = await started();
    const request = await world.ask({ tenant_name: "t1" });
    const [id = ""] = (await world.fulfilled(request)).nodes as string[];
    await world.pythonPool("cloud", ["small"]);
    await world.use(request);
    await gone(id);
    expect(events("node.check-failed")[0]?.facts.why).toContain("not Nodeyard's");
  });
});

describe("a launcher that dies", () => {
  test("while it checks leaves a node that nobody gets, and that is deleted", async () => {
    const { world, member, answers, checks, config, check, used, gone } = await started();
    answers.push("waits");
    const id = await used();
    await world.until("it is checked", () => checks.length === 1);
    expect(world.node(id)).toMatchObject({ state: "building", allocated_to: null, tenant_name: null });
    member.tree.crash();
    await world.start("b", config, { check });
    const other = await used();
    expect(other).not.toBe(id);
    await gone(id);
  });

  for (const [write, lost, outcome] of [
    ["before it is checked", "request", "is checked by another launcher"],
    ["before it is checked", "reply", "is deleted"],
    ["that it has passed", "request", "is deleted"],
    ["that it has passed", "reply", "is free"],
  ] as const)
    test(`at the write ${write}, whose ${lost} is lost, leaves a node that ${outcome}`, async () => {
      const { world, member, checks, config, check } = await started();
      const request = await world.ask({ tenant_name: "t1" });
      const [id = ""] = (await world.fulfilled(request)).nodes as string[];
      const passed = write === "that it has passed";
      let died = false;
      world.fault = ({ client, ops }) => {
        const isOfNode = ops.some(({ op, path }) => op === "set" && path === paths.node(id));
        if (client !== "a" || died || !isOfNode || checks.length !== (passed ? 1 : 0)) return undefined;
        died = true;
        queueMicrotask(() => member.tree.crash());
        return lost === "request" ? "lose-request" : "lose-reply";
      };
      await world.use(request);
      await world.until("it died", () => died);
      const before = checks.length;
      await world.start("b", config, { check });
      await world.run(30_000);
      const node = world.node(id);
      if (outcome === "is deleted") return expect(node).toBeUndefined();
      expect(node).toMatchObject({ state: "ready", allocated_to: null, tenant_name: null });
      expect(noteOf(node)?.reuse).toMatchObject({ times: 1 });
      expect(checks.length - before).toBe(passed ? 0 : 1);
    });
});
