import { chmodSync } from "node:fs";
import { DriverError, runSteps, type StepContext } from "@nodeyard/driver";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CAPACITY, Machine } from "../../../../testing/slivers/index.ts";
import { sliverDriver } from "../src/index.ts";
import { betweenManagers, contextOf, driverBehind, providerOf } from "./rig.ts";

const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
const never = new AbortController().signal;

describe("slivers of two machines", () => {
  const one = new Machine("one");
  const two = new Machine("two", "memory", {}, one);
  beforeAll(() => Promise.all([one.start(), two.start()]));
  afterAll(() => Promise.all([one.stop(), two.stop()]));
  beforeEach(() => Promise.all([one.clear(), two.clear()]));

  const opened = async (
    label: object = {},
    warnings: string[] = [],
    more: object = {},
    parts: string[] = [],
    between = betweenManagers(() => false),
  ) => {
    const config = providerOf([one, two], label, more);
    const context = { ...contextOf(INSTALLATION, warnings, parts), clock: between.clock };
    const provider = await driverBehind(between).open(config, context);
    const [pool] = config.pools as [(typeof config.pools)[number]];
    const tag = (nodeId: string) => ({ installation: INSTALLATION, provider: "lab", pool: "main", nodeId });
    const order = (nodeId: string) => ({
      tag: tag(nodeId),
      hostname: `np${nodeId}`,
      pool,
      label: pool.labels.get("small")!,
      az: null,
      imageExternalId: null,
      request: {
        id: "1",
        labels: [],
        requestor: null,
        requestorData: null,
        relativePriority: 0,
        eventId: null,
        createdTime: null,
        tenantName: null,
      },
      attempt: 1,
    });
    const run = <T>(start: Parameters<typeof runSteps<T>>[0], externalId: StepContext["externalId"] = null) =>
      runSteps<T>(start, { clock: between.clock, signal: never, externalId, save: async () => {} });
    return {
      provider,
      create: (id: string) => run((context) => provider.create(order(id), context)),
      remove: (id: string, externalId: StepContext["externalId"] = null) =>
        run((context) => provider.remove(tag(id), context), externalId),
    };
  };
  const kindOf = (work: Promise<unknown>) =>
    work.then(
      () => "none",
      (error) => (error instanceof DriverError ? `${error.kind}: ${error.message}` : String(error)),
    );
  const ids = (count: number) => Array.from({ length: count }, (_, at) => String(at + 1).padStart(10, "0"));

  test("many at once are spread by what is promised, and none is refused while there is room", async () => {
    const { create, provider } = await opened({ "cpu-guarantee": 1000 });
    const machines = await Promise.all(ids(8).map(create));
    // Each is logged in to at the address and by the login of its place.
    expect(machines[0]).toMatchObject({
      interfaceIp: expect.stringMatching(/^127\.213\.0\.\d+$/),
      privateIpv4: machines[0]!.interfaceIp,
      publicIpv4: null,
      connection: { username: expect.stringMatching(/^ny-\d+$/), port: 22 },
    });
    const on = (machine: Machine) => machine.status().then(({ slivers }) => slivers.length);
    expect(await Promise.all([on(one), on(two)])).toEqual([4, 4]);
    expect(await kindOf(create("0000000009"))).toMatch(/^quota: .*none of 2 machines has room/);
    expect(await provider.quota(never)).toMatchObject({ millicores: 2 * CAPACITY.cpu, instances: 60 });
  });

  test("a label that no machine can ever hold is a matter of configuration", async () => {
    const config = providerOf([one, two], { "cpu-guarantee": CAPACITY.cpu + 1 });
    const { provider } = await opened();
    const label = config.pools[0]!.labels.get("small")!;
    expect(await kindOf(provider.need(label, never))).toMatch(/^configuration: .*millicores/);
  });

  test("one machine is away: the other one serves, a list is an error, and what is on the first stays", async () => {
    const { create, remove, provider } = await opened();
    const first = await create("0000000001");
    const [away, here] = first.hostId === "one" ? [one, two] : [two, one];
    await away.kill();
    const warnings: string[] = [];
    const later = await opened({}, warnings);
    expect(warnings).toEqual(["the machine does not answer"]);
    expect(await kindOf(provider.list(never))).toMatch(/^transient/);
    // Its id would have been saved before it was written into a document: without one, the machine that is away has none of it.
    expect((await later.create("0000000002")).hostId).toBe(here.name);
    const removing = remove("0000000001", first.externalId);
    removing.catch(() => undefined);
    expect(await kindOf(removing)).toMatch(/^transient/);
    await away.start();
    await remove("0000000001", first.externalId);
    expect((await provider.list(never)).map(({ tag }) => tag?.nodeId)).toEqual(["0000000002"]);
  });

  test("one machine is silent: each question to it ends by itself, and launches go on at the other", async () => {
    const between = betweenManagers((method, machine) => method === "Status" && machine === "one");
    const { create } = await opened({}, [], {}, [], between);
    for (const id of ids(2)) {
      await between.faults().silence();
      expect((await create(id)).hostId).toBe("two");
    }
    expect(await one.status()).toMatchObject({ slivers: [] });
  });

  test("a manager that is killed while slivers start is waited for", async () => {
    const { create, provider } = await opened();
    const creating = Promise.allSettled(ids(4).map(create));
    await one.until(({ slivers }) => slivers.length > 0);
    await one.kill();
    await one.start();
    const machines = await creating;
    // A call that was under way when it died ends as one that may be tried again; nothing is made twice.
    for (const [index, machine] of machines.entries())
      if (machine.status === "rejected") {
        expect(machine.reason).toMatchObject({ kind: "transient" });
        await create(ids(4)[index]!);
      }
    expect((await provider.list(never)).map(({ tag }) => tag?.nodeId).sort()).toEqual(ids(4));
  });

  test("another writer's machine is left out with its reason, and the others serve", async () => {
    const taken = new Machine("taken", "memory", {}, one);
    await taken.start();
    try {
      await taken.change((slivers) => slivers.clear(), { writer: "metastatic:slots", epoch: 1 });
      const [warnings, parts]: [string[], string[]] = [[], []];
      const machines = [taken, two].map(({ name, socket }) => ({ name, socket }));
      const { create, remove, provider } = await opened({}, warnings, { machines }, parts);
      expect(warnings).toEqual(["the machine is another writer's; the others serve"]);
      expect(parts).toEqual([expect.stringMatching(/^machine taken: .* is written by metastatic:slots/)]);
      for (const id of ids(3)) expect((await create(id)).hostId).toBe("two");
      expect((await provider.list(never)).map(({ tag }) => tag?.nodeId).sort()).toEqual(ids(3));
      expect(await provider.quota(never)).toMatchObject({ millicores: CAPACITY.cpu });
      const shown = await provider.offers!.slivers!.machines(never);
      expect(shown.map(({ name, error }) => [name, error])).toEqual([
        ["taken", expect.stringMatching(/is written by metastatic:slots/)],
        ["two", null],
      ]);
      for (const id of ids(3)) await remove(id);
    } finally {
      await taken.stop();
    }
  });

  test("another writer's machine is refused when opened, in one line, until the epoch is higher", async () => {
    const metastatic = { writer: "metastatic:slots", epoch: 1 };
    await one.kill();
    const taken = new Machine("taken", "memory", {}, one);
    await taken.start();
    try {
      await taken.change((slivers) => slivers.clear(), metastatic);
      const open = (more: object = {}) =>
        sliverDriver.open(
          providerOf([one, taken].slice(1), {}, { "signing-keys": one.keysFile, ...more }),
          contextOf(INSTALLATION),
        );
      expect(await kindOf(open())).toMatch(
        /^configuration: provider lab: node taken is written by metastatic:slots in epoch 1; .*above 1$/,
      );
      await (await open({ epoch: 2 })).close();
      await taken.change((slivers) => slivers.clear(), { epoch: 2 });
      await expect(taken.change((slivers) => slivers.clear(), metastatic)).rejects.toMatchObject({
        code: "sliver-protocol.fenced",
      });
      // The old epoch's provider, still configured, says so as well.
      expect(await kindOf(open())).toMatch(/^configuration: .*epoch 2/);
    } finally {
      await taken.stop();
    }
  });

  test("a machine that was enrolled by another name, keys that others may read: refused", async () => {
    const config = providerOf([one], {}, { machines: [{ name: "uno", socket: one.socket }] });
    expect(await kindOf(sliverDriver.open(config, contextOf(INSTALLATION)))).toMatch(
      /^configuration: .*configured as uno was enrolled as one/,
    );
    chmodSync(one.keysFile, 0o644);
    try {
      expect(await kindOf(sliverDriver.open(providerOf([one]), contextOf(INSTALLATION)))).toMatch(
        /^access: .*chmod 600/,
      );
    } finally {
      chmodSync(one.keysFile, 0o600);
    }
  });

  test("a machine that clients reach by its address must publish ports", async () => {
    const machines = [{ name: "one", socket: one.socket, address: "one.example.org" }];
    const { create, remove } = await opened({}, [], { machines });
    expect(await kindOf(create("0000000001"))).toMatch(
      /^configuration: .*one publishes no ports.*isolation.inbound/,
    );
    await remove("0000000001");
    expect(await one.status()).toMatchObject({ slivers: [], unlisted: [] });
  });

  test("keys that the machine does not trust: the launch fails with the reason, and nothing is left", async () => {
    const stranger = new Machine("stranger");
    const { create } = await opened({}, [], { "signing-keys": stranger.keysFile });
    expect(await kindOf(create("0000000001"))).toMatch(/^access: .*no key .* is valid now/);
    expect([await one.status(), await two.status()]).toMatchObject([{ slivers: [] }, { slivers: [] }]);
    await stranger.stop();
  });
});
