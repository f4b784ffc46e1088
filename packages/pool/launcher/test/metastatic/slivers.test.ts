import { paths } from "@nodeyard/model";
import { askConsole } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import { rotateSigningKeys, signerOf, signText } from "@nodeyard/sliver-protocol";
import { describe, expect, test } from "vitest";
import { ISOLATED, KEY, key, SliverLab } from "./sliver-lab.ts";

describe("slots that are slivers", () => {
  test("each slot is a sliver of its own before it is handed out, and gone before it is free", async () => {
    const lab = new SliverLab();
    await lab.begin("a");
    const [one, two] = [await lab.get(), await lab.get()];
    expect(lab.backings()).toHaveLength(1);
    expect(lab.running).toEqual([`n${one.id}`, `n${two.id}`].sort());
    for (const node of [one, two]) {
      expect(node).toMatchObject({
        state: "ready",
        username: expect.stringMatching(/^ny-\d\d$/),
        interface_ip: lab.backings()[0]!.interface_ip,
        connection_type: "ssh",
        host_keys: [`ssh-ed25519 key-of-${node.interface_ip}:${node.connection_port}`],
        resources: { instances: 1, millicores: 500, ram: 256 },
        driver_data: { isolation: "sliver" },
      });
    }
    expect([one.connection_port, two.connection_port]).toEqual([22_001, 22_002]);
    expect(one.username).not.toBe(two.username);
    const [host] = [...lab.hosts.values()];
    const made = [...host!.machine.made.values()].find(({ config }) => config.name === `n${one.id}`);
    expect(made?.config).toMatchObject({ keys: [KEY], effective: { cpuGuarantee: 500, memoryCap: 524_288 } });

    const asker = { tree: lab.other, clock: lab.clock, random: seededRandom(1) };
    const shown = await lab.settle(askConsole(asker, { id: one.id, launcher: null, provider: null }));
    // It may be configured again when the second one comes.
    expect(shown?.lines.slice(0, 3)).toEqual(["create 1:1", "configure 1:1", "start 1:1"]);
    expect(shown?.problem).toBeNull();

    const held: string[][] = [];
    host!.machine.disturb = (step, { index }) => {
      const { name } = host!.machine.made.get(index)?.config ?? { name: "" };
      if (step === "destroy" && name === `n${one.id}`) held.push(lab.claims(lab.backings()[0]!.id));
    };
    await lab.giveBack(one);
    expect(lab.running).toEqual([`n${two.id}`]);
    expect(held[0], "its slot is taken while it ends").toEqual(["0", "1"]);
    await lab.giveBack(two);
    expect(lab.made).toBe(0);
    await lab.until("the backing node is given back", () => lab.backings().length === 0);
  });

  test("its backing nodes are shown as machines of slivers, with the nodes of this installation, and one that is silent with why", async () => {
    const lab = new SliverLab();
    const { launcher } = await lab.begin("a");
    const node = await lab.get();
    const [backing] = lab.backings();
    const [host] = [...lab.hosts.values()];
    const shown = await lab.settle(launcher.sliverMachines());
    expect(shown).toMatchObject([
      {
        ...{ provider: "slicer", error: null },
        machines: [
          {
            ...{ name: backing!.id, error: null, guaranteed: { millicores: 500, ram: 256 } },
            slivers: [{ name: `n${node.id}`, node: node.id, caps: { ram: 512 } }],
          },
        ],
      },
    ]);
    host!.kill();
    const [{ machines } = { machines: [] }] = await lab.settle(launcher.sliverMachines());
    expect(machines).toMatchObject([
      { name: backing!.id, error: expect.stringContaining("does not answer") },
    ]);
  });

  test("a backing node that is not enrolled fails its label, with the remedy", async () => {
    const lab = new SliverLab();
    const { log } = await lab.begin("a");
    const asked = await lab.slice();
    await lab.until("it has a backing node", () => {
      const [backing] = lab.backings();
      if (typeof backing?.interface_ip === "string") lab.bare.add(backing.interface_ip);
      return lab.request(asked)?.state === "failed";
    });
    const reported = log.lines.map(({ facts }) => JSON.stringify(facts)).join("\n");
    expect(reported).toMatch(
      /is not a sliver host of this installation; to make it one: nodeyard sliverd install \S+/,
    );
    expect(lab.running).toEqual([]);
  });

  test("a sliver that a launcher made after its slot was freed is ended; those of slots stay", async () => {
    const lab = new SliverLab();
    await lab.begin("a");
    const node = await lab.get();
    const [host] = [...lab.hosts.values()];
    const { signal } = new AbortController();
    const now = await lab.settle(host!.client.document(signal));
    const [own] = now.slivers;
    // What a launcher writes that lost its session and does not know it.
    const stray = {
      ...own!,
      name: "n0000009999",
      generation: 9999,
      tags: { ...own!.tags, node: "0000009999" },
    };
    const { node: name, epoch, version, writer } = now;
    const claims = {
      v: 1,
      node: name,
      epoch,
      version: version + 1,
      writer,
      issuedAt: 0,
      slivers: [own, stray],
    };
    await lab.settle(host!.client.deliver(signText("document", claims, signerOf(lab.keys)), signal));
    await lab.until("it runs", () => lab.running.length === 2);
    await lab.until("it is ended", () => lab.made === 1, 400_000);
    expect(lab.running).toEqual([`n${node.id}`]);
    expect(lab.node(node.id)?.state).toBe("ready");
  });

  test("a slot with the cache of a request goes to no other one, when its label has no caches any more, too", async () => {
    const lab = new SliverLab();
    const caches = [{ name: "npm", size: 1, key: ["label"], commit: "always" }];
    const member = await lab.begin("a", { sliver: { ...ISOLATED.sliver, caches } });
    const first = await lab.get();
    // Its request went before anyone used it.
    await lab.settle(lab.other.delete(paths.request(first.allocated_to as string)));
    await lab.until("it is nobody's", () => lab.node(first.id)?.allocated_to === null);
    member.tree.crash();
    await lab.begin("b");
    expect((await lab.get()).id).not.toBe(first.id);
  });

  test("a slot is taken where the request's cache is, and the journal says so; where that has no room, elsewhere", async () => {
    const lab = new SliverLab();
    const caches = [{ name: "npm", size: 1, key: ["project"], commit: "always" }];
    const label = { sliver: { ...ISOLATED.sliver, caches }, "grace-time": 600 };
    const { journal } = await lab.begin("a", label);
    const job = (project: string) => lab.get({ requestor_data: { project } });
    // Two backing nodes, of which the younger one has the cache.
    const both = [await job("shop"), await job("shop")];
    const first = await job("web");
    const { backing } = lab.place(first);
    expect(backing).not.toBe(lab.place(both[0]!).backing);
    for (const node of [...both, first]) await lab.giveBack(node);
    const again = await job("web");
    expect(lab.place(again).backing).toBe(backing);
    const said = (id: string) =>
      journal.events.filter(({ event, node }) => event === "node.remark" && node === id);
    expect(said(again.id)).toMatchObject([
      { facts: { remark: `its slot is on backing node ${backing}, which has its cache npm` } },
    ]);
    await job("web");
    const elsewhere = await job("web");
    expect(lab.place(elsewhere).backing).not.toBe(backing);
    expect(said(elsewhere.id)).toEqual([]);
  });

  test("more slots than the machine has room for fail their request, with what to change", async () => {
    const lab = new SliverLab();
    const sliver = { ...ISOLATED.sliver, "memory-guarantee": 2_500, memory: 2_500 };
    const { log } = await lab.begin("a", { sliver });
    const first = await lab.get();
    const asked = await lab.slice();
    await lab.until("the request fails", () => lab.request(asked)?.state === "failed");
    const reported = log.lines.map(({ facts }) => JSON.stringify(facts)).join("\n");
    expect(reported).toMatch(
      /has no room for so many slots: .*memory.*; lower the label's max-parallel-jobs or guarantees/,
    );
    await lab.until("only the first is left", () => lab.made === 1);
    expect(lab.running).toEqual([`n${first.id}`]);
  });

  test("slivers of another writer are left alone, whatever the epoch", async () => {
    const lab = new SliverLab();
    const { log } = await lab.begin("a");
    const theirs = {
      name: "theirs",
      generation: 1,
      instantiation: "plc-instantiated",
      tags: { who: "them" },
    };
    const claims = { v: 1, epoch: 1, version: 1, writer: "driver-sliver", issuedAt: 0, slivers: [theirs] };
    const asked = await lab.slice();
    let taken = false;
    await lab.until("the request fails", () => {
      const [address] = lab.backings().map(({ interface_ip }) => interface_ip);
      if (typeof address === "string" && !taken) {
        taken = true;
        const node = `host-${address}`;
        const document = signText("document", { ...claims, node }, signerOf(lab.keys));
        void lab
          .hostAt(address)
          .started.then(() => lab.hostAt(address).client.deliver(document, new AbortController().signal));
      }
      return lab.request(asked)?.state === "failed";
    });
    const reported = log.lines.map(({ facts }) => JSON.stringify(facts)).join("\n");
    expect(reported).toMatch(/driver-sliver has 1 slivers on it; end those first/);
    expect(lab.running).toEqual(["theirs"]);
  });

  test("a host that was away learns of rotated keys before the next document", async () => {
    const lab = new SliverLab();
    await lab.begin("a", { "max-parallel-jobs": 8 });
    await lab.get();
    lab.keys = rotateSigningKeys(lab.keys, key(), { now: Math.floor(lab.clock.now() / 1000), overlap: 60 });
    lab.keys = rotateSigningKeys(lab.keys, key(), { now: Math.floor(lab.clock.now() / 1000), overlap: 0 });
    const second = await lab.get();
    expect(lab.running).toContain(`n${second.id}`);
  });
});
