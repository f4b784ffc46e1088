import { DriverError, type Scanner } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { deleteNode, holdNode, type OperationHandles, retireBacking } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { config, Lab, metal, OWNER } from "./lab.ts";

describe("backing nodes that are no good", () => {
  test("26: a slot that does not answer retires its backing node, and its node is tried on another", async () => {
    const lab = new Lab();
    let scans = 0;
    const scan: Scanner = {
      scan: async ({ host }) => {
        // The second slot; the fake cloud shows the keys of its machines itself.
        if (++scans === 2) throw new DriverError("timeout", `no answer of ${host}`);
        return { address: host, family: 4, hostKeys: ["ssh-rsa SLOT"] };
      },
    };
    await lab.start("a", config({ "host-key-checking": true, "grace-time": 60 }), { scan });
    const first = await lab.get();
    expect(first.host_keys).toEqual(["ssh-rsa SLOT"]);
    const { backing } = lab.place(first);
    const second = await lab.get();
    expect(lab.place(second).backing).not.toBe(backing);
    await lab.until("it is written down", () => lab.userData(backing).failed === true);
    expect(lab.lockData(backing)).toEqual([OWNER]);
    const third = await lab.get();
    expect(lab.place(third).backing).not.toBe(backing);
    await lab.giveBack(first);
    await lab.gone(backing, 5_000);
    lab.check();
  });

  test("27: one that is gone gets no more slots; what it had is cleared away", async () => {
    const lab = new Lab();
    await lab.start("a", config());
    const first = await lab.get();
    const { backing } = lab.place(first);
    const contender = lab.children(paths.nodeLock(backing))[0];
    await lab.settle(
      lab.other.commit([
        { op: "delete", path: `${paths.nodeLock(backing)}/${contender}` },
        { op: "delete", path: paths.nodeLock(backing) },
        { op: "delete", path: paths.node(backing) },
      ]),
    );
    const second = await lab.get();
    expect(lab.place(second).backing).not.toBe(backing);
    await lab.giveBack(first);
    await lab.until("its folder is gone", () => !lab.children("/nodeyard/slots").includes(backing));
  });

  test("an operator may retire one; idle nodes on it do not keep it", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config({ "grace-time": 60 }));
    const used = await lab.get();
    const idle = await lab.get();
    const { backing } = lab.place(used);
    expect(lab.place(idle).backing).toBe(backing);
    // Nobody took it: its request goes, and it is free for everyone.
    await lab.settle(lab.other.delete(paths.request(idle.allocated_to as string)));
    await lab.until("it is idle", () => lab.node(idle.id)?.allocated_to === null);
    await lab.settle(retireBacking(a.tree, backing, "its disk is slow"));
    await lab.gone(idle.id);
    expect(lab.node(used.id)?.state).toBe("ready");
    expect(lab.userData(backing).failed).toBe(true);
    await lab.giveBack(used);
    await lab.gone(backing, 5_000);
    expect(lab.children("/nodeyard/slots")).toEqual([]);
  });

  test("a delivered node that vanished before it was taken is requested again", async () => {
    const lab = new Lab();
    const taking = (op: { readonly op: string; readonly path: string }) =>
      op.op === "create" && /^\/nodeyard\/slots\/\d+$/.test(op.path);
    lab.fault = ({ ops }) => (ops.some(taking) ? { delayMs: 1_000 } : undefined);
    await lab.start("a", config());
    const asked = await lab.slice();
    const backing = await lab.until("it is delivered", () =>
      lab.backings().find(({ state }) => state === "ready"),
    );
    await lab.put(paths.node(backing.id), { ...backing, state: "failed" });
    const request = await lab.fulfilled(asked);
    expect(lab.place(lab.node((request.nodes as string[])[0]!)!).backing).not.toBe(backing.id);
    await lab.gone(backing.id);
    lab.check();
  });

  test.each([
    ["delete", "deleting", deleteNode],
    [
      "hold",
      "hold",
      (handles: OperationHandles, id: string) => holdNode(handles, id, { comment: "look", forSeconds: 20 }),
    ],
  ] as const)(
    "a client that waits for the lock to %s one gets it first: the launcher gives the node up",
    async (_, state, change) => {
      const lab = new Lab();
      const taking = (op: { readonly op: string; readonly path: string }) =>
        op.op === "create" && /^\/nodeyard\/slots\/\d+$/.test(op.path);
      let underWay = false;
      lab.fault = ({ ops }) => {
        if (underWay || !ops.some(taking)) return undefined;
        underWay = true;
        return { delayMs: 1_000 };
      };
      await lab.start("a", config());
      const handles = { tree: lab.other, clock: lab.clock, random: seededRandom(1) };
      const asked = await lab.slice();
      await lab.until("it is about to be taken", () => underWay);
      const backing = lab.backings()[0]!;
      await lab.settle(change(handles, backing.id), 5_000);
      expect(lab.node(backing.id)?.state).toBe(state);
      expect(lab.userData(backing.id).owner).toBe(OWNER);
      await lab.until("our lock is gone", () => !lab.lockData(backing.id).includes(OWNER), 5_000);
      const request = await lab.fulfilled(asked);
      expect(lab.place(lab.node((request.nodes as string[])[0]!)!).backing).not.toBe(backing.id);
      await lab.gone(backing.id, 60_000);
      lab.check();
    },
  );

  test("a backing node is not given back while anyone has a slot, whatever the view of its owner says", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "grace-time": 0 }));
    const first = await lab.get();
    const { backing } = lab.place(first);
    // A claim that only the tree knows of when the owner decides.
    await lab.put(`/nodeyard/slots/${backing}/1`, { v: 1 });
    await lab.giveBack(first);
    await lab.run(10_000);
    expect(lab.node(backing)?.state).toBe("in-use");
    await lab.settle(lab.other.delete(`/nodeyard/slots/${backing}/1`));
    await lab.gone(backing, 5_000);
  });

  test("an invalid claim keeps its slot, and is logged once", async () => {
    const lab = new Lab();
    const { log } = await lab.start("a", config({ "grace-time": 600 }));
    const node = await lab.get();
    const { backing } = lab.place(node);
    const claim = `/nodeyard/slots/${backing}/1`;
    await lab.put(claim, { v: 1 });
    await lab.run(200_000);
    const reported = () => log.lines.filter(({ text }) => text.includes("names no node"));
    expect(reported()).toMatchObject([{ level: "warn", facts: { provider: "slicer", claim } }]);
    expect(lab.place(await lab.get()).backing).not.toBe(backing);
    expect(reported()).toHaveLength(1);
    await lab.settle(lab.other.delete(claim));
    expect(lab.place(await lab.get())).toEqual({ backing, slot: 1 });
  });

  test("a claim whose node is gone is freed", async () => {
    const lab = new Lab();
    await lab.start("a", config());
    const node = await lab.get();
    const { backing } = lab.place(node);
    await lab.settle(lab.other.delete(`${paths.node(node.id)}/lock`));
    await lab.settle(lab.other.delete(paths.node(node.id)));
    await lab.until("its slot is free", () => !lab.claims(backing).includes("0"));
  });

  test("an unused request is taken back after grace-time", async () => {
    const lab = new Lab();
    const fields = { "launch-timeout": 10, "launch-retries": 1 };
    await lab.start("a", config({ "grace-time": 30 }, {}, [metal({ "max-servers": 1 })], fields));
    await lab.get();
    await lab.get();
    const asked = await lab.slice();
    const backing = () => lab.children(paths.requests).find((id) => lab.request(id)?.requestor === OWNER);
    await lab.until("a backing node is asked for", backing, 1_000);
    await lab.until("the request has failed", () => lab.request(asked)?.state === "failed", 15_000);
    expect(backing()).toBeDefined();
    await lab.until("nothing is asked for", () => backing() === undefined, 31_000);
    expect(lab.backings()).toHaveLength(1);
  });
});

test("a slot whose user vanished is not given away for a minute (rule 1)", async () => {
  const lab = new Lab();
  await lab.start("a", config({ "max-parallel-jobs": 1, "grace-time": 600 }, { "max-servers": 2 }));
  const node = await lab.get();
  const { backing } = lab.place(node);
  const contender = await lab.contend(paths.nodeLock(node.id));
  await lab.put(paths.node(node.id), { ...lab.node(node.id), state: "in-use" });
  await lab.settle(lab.other.delete(contender));
  await lab.run(55_000);
  expect(lab.claims(backing)).toEqual(["0"]);
  await lab.gone(node.id, 10_000);
  expect(lab.claims(backing)).toEqual([]);
});

test("a changed provider keeps its slots, and what is offered follows the configuration", async () => {
  const lab = new Lab();
  const settings = { "max-parallel-jobs": 3, "grace-time": 3_600 };
  const a = await lab.start("a", config(settings));
  const first = await lab.get();
  await lab.settle(a.launcher.reconfigure(config({ ...settings, "max-parallel-jobs": 2 })));
  const { backing } = lab.place(first);
  expect(lab.place(await lab.get())).toEqual({ backing, slot: 1 });
  expect(lab.place(await lab.get()).backing).not.toBe(backing);
  expect(lab.lockData(backing)).toEqual([OWNER]);
  lab.check();
});

test("a request that is taken back while it waits frees its place, and asks for nothing more", async () => {
  const lab = new Lab();
  await lab.start("a", config({ "grace-time": 5 }, {}, [metal({ "max-servers": 1 })]));
  await lab.get();
  await lab.get();
  const asked = await lab.slice();
  const waiting = await lab.until("it waits", () => lab.ends().find(({ state }) => state === "building"));
  await lab.settle(lab.other.delete(paths.request(asked)));
  await lab.gone(waiting.id);
  const backing = () => lab.children(paths.requests).find((id) => lab.request(id)?.requestor === OWNER);
  await lab.until("nothing is asked for", () => backing() === undefined, 10_000);
});

test("a claim that was under way when its backing node failed is refused, and made elsewhere", async () => {
  const lab = new Lab();
  await lab.start("a", config({ "grace-time": 60 }));
  const first = await lab.get();
  const { backing } = lab.place(first);
  const claim = `/nodeyard/slots/${backing}/1`;
  const claims = (ops: readonly { readonly path: string }[]) => ops.some(({ path }) => path === claim);
  let underWay = false;
  lab.fault = ({ ops }) => {
    if (!claims(ops)) return undefined;
    underWay = true;
    return { delayMs: 300 };
  };
  const asked = await lab.slice();
  await lab.until("the claim is under way", () => underWay);
  const user_data = JSON.stringify({ ...lab.userData(backing), failed: true });
  await lab.put(paths.node(backing), { ...lab.node(backing), user_data });
  const request = await lab.fulfilled(asked);
  expect(lab.place(lab.node((request.nodes as string[])[0]!)!).backing).not.toBe(backing);
  expect(lab.claims(backing)).toEqual(["0"]);
  lab.check();
});

test("a tenant's limit counts its slots; what carries them counts for no tenant", async () => {
  const lab = new Lab();
  const tenantLimits = new Map([["t", { instances: 2, cores: 1 }]]);
  const a = await lab.start("a", { ...config({ "max-parallel-jobs": 8 }), tenantLimits });
  await lab.get({ tenant_name: "t" });
  const second = await lab.get({ tenant_name: "t" });
  const third = await lab.slice({ tenant_name: "t" });
  await lab.until("it waits", () => a.launcher.verdict(third)?.code === "capacity.tenant");
  await lab.giveBack(second);
  await lab.fulfilled(third);
  expect(lab.backings()).toHaveLength(1);
});
