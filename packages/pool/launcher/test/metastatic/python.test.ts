import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { config, Lab, OWNER } from "./lab.ts";

/** What a Python launcher leaves behind (docs/contract/drivers.md, "Metastatic records"): two slots of three taken, one by a held node. */
async function leftByPython(lab: Lab, fields: { launched?: number; slots?: number } = {}): Promise<void> {
  await pythonBacking(lab, fields);
  await pythonEnd(lab, "0000000011", 0, "in-use");
  await pythonEnd(lab, "0000000012", 2, "hold");
}

async function pythonBacking(lab: Lab, fields: { launched?: number; slots?: number } = {}): Promise<void> {
  const { launched = lab.clock.now() / 1000, slots = 3 } = fields;
  // The lock first: an unlocked node in use has lost its user.
  await lab.contend(paths.nodeLock("0000000010"), Buffer.from(OWNER));
  await lab.put(paths.node("0000000010"), {
    state: "in-use",
    state_time: lab.clock.now() / 1000,
    provider: "metal",
    pool: "main",
    type: ["large"],
    external_id: "machine-10",
    interface_ip: "10.0.0.10",
    username: "tester",
    connection_port: 22,
    connection_type: "ssh",
    host_keys: ["ssh-rsa A"],
    allocated_to: "100-0000000001",
    attributes: { site: "py" },
    user_data: JSON.stringify({ owner: OWNER, label: "slice", slots, failed: false, launched }),
  });
}

async function pythonEnd(lab: Lab, id: string, slot: number, state: string): Promise<void> {
  await lab.put(paths.node(id), {
    state,
    state_time: lab.clock.now() / 1000,
    provider: "slicer",
    pool: "main",
    type: ["slice"],
    external_id: id,
    interface_ip: "10.0.0.10",
    slot,
    host_keys: [],
    driver_data: {
      metadata: { nodepool_node_id: id, nodepool_pool_name: "main", nodepool_provider_name: "slicer" },
      backing_node: "0000000010",
      slot,
      node: id,
    },
  });
  if (state === "in-use") await lab.contend(paths.nodeLock(id), Buffer.from("zuul"));
}

describe("beside and after Python launchers", () => {
  test("their slots are taken over: claims for what lives, the free slot for the next node", async () => {
    const lab = new Lab();
    await leftByPython(lab);
    await lab.start("a", config({ "max-parallel-jobs": 3 }));
    await lab.until("it is taken over", () => lab.claims("0000000010").length === 2);
    expect(lab.json("/nodeyard/slots/0000000010/0")?.node).toBe("0000000011");
    expect(lab.json("/nodeyard/slots/0000000010/2")?.node).toBe("0000000012");
    const node = await lab.get();
    expect(lab.place(node)).toEqual({ backing: "0000000010", slot: 1 });
    expect(node).toMatchObject({ interface_ip: "10.0.0.10", attributes: { site: "py" }, username: "tester" });
    expect(lab.lockData("0000000010")).toEqual([OWNER]);
    lab.check();
  });

  test("their slots are claimed at once, however long after the backing node, or before it, they come", async () => {
    const lab = new Lab();
    await lab.start("a", config({ "max-parallel-jobs": 3, "grace-time": 30 }));
    // One that is empty, and goes within the minute: nothing is compared by and by.
    await lab.giveBack(await lab.get());
    await pythonEnd(lab, "0000000011", 0, "hold");
    await lab.run(1_000);
    await pythonBacking(lab);
    const claimed = (count: number) => () => lab.claims("0000000010").length === count;
    await lab.until("it has the slot of who came before", claimed(1), 1_000);
    await lab.run(1_000);
    await pythonEnd(lab, "0000000012", 2, "hold");
    await lab.until("it has the slot of who came after", claimed(2), 1_000);
    lab.check();
  });

  test("and given back: what they need stands in the records as they write them", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config({ "max-parallel-jobs": 3 }));
    const node = await lab.get();
    const { backing } = lab.place(node);
    await lab.settle(a.launcher.close());
    await lab.settle(a.tree.close());
    // What recovery of theirs reads: owner twice, label, slots, failed, launched; backing node and slot.
    expect(lab.lockData(backing)[0]).toBe(OWNER);
    expect(lab.userData(backing)).toMatchObject({ owner: OWNER, label: "slice", slots: 3, failed: false });
    expect(lab.node(node.id)?.driver_data).toMatchObject({ backing_node: backing, slot: 0, node: node.id });
    // Meanwhile they free our slot 0 and give it and slot 1 to nodes of theirs, of which we hear only when we are back.
    await lab.settle(lab.other.delete(`${paths.node(node.id)}/lock`).catch(() => {}));
    await lab.settle(lab.other.delete(paths.node(node.id)));
    for (const [id, slot] of [
      ["0000000021", 0],
      ["0000000022", 1],
    ] as const) {
      await pythonEnd(lab, id, slot, "hold");
      const record = lab.node(id)!;
      await lab.put(paths.node(id), {
        ...record,
        driver_data: { ...(record.driver_data as object), backing_node: backing },
      });
    }
    await lab.start("b", config({ "max-parallel-jobs": 3 }));
    expect(lab.place(await lab.get())).toEqual({ backing, slot: 2 });
    const freed = () => lab.json(`/nodeyard/slots/${backing}/0`)?.node === "0000000021";
    await lab.until("claims and records agree", () => freed() && lab.claims(backing).length === 3);
    lab.check();
  });

  test("records that Python trips over do no harm: two nodes in one slot, a slot past the end, missing members", async () => {
    const lab = new Lab();
    await leftByPython(lab);
    await pythonEnd(lab, "0000000013", 0, "hold");
    await pythonEnd(lab, "0000000014", 7, "hold");
    const record = lab.node("0000000010")!;
    await lab.put(paths.node("0000000030"), { ...record, user_data: JSON.stringify({ owner: OWNER }) });
    await lab.contend(paths.nodeLock("0000000030"), Buffer.from(OWNER));
    await lab.put(paths.node("0000000031"), { ...record, user_data: `{"owner": "${OWNER}", "slots": "` });
    await lab.contend(paths.nodeLock("0000000031"), Buffer.from(OWNER));
    await lab.start("a", config({ "max-parallel-jobs": 3 }));
    expect(lab.place(await lab.get())).toEqual({ backing: "0000000010", slot: 1 });
    expect(lab.place(await lab.get()).backing).not.toBe("0000000010");
    expect(lab.claims("0000000010").sort()).toEqual(["0", "1", "2", "7", "also-0000000013"]);
    await lab.until(
      "what says nothing of itself is given back",
      () => lab.node("0000000030")?.state !== "in-use",
    );
    expect(lab.node("0000000031")?.state).toBe("in-use");
  });

  test("a record that says ours and whose lock does not is left alone", async () => {
    const lab = new Lab();
    await leftByPython(lab);
    const [contender] = lab.children(paths.nodeLock("0000000010"));
    await lab.put(`${paths.nodeLock("0000000010")}/${contender}`, "somebody else");
    await lab.start("a", config({ "max-parallel-jobs": 3 }));
    expect(lab.place(await lab.get()).backing).not.toBe("0000000010");
    expect(lab.claims("0000000010")).toEqual([]);
  });

  test("a node that was locked and never written is freed, one that was given back half-way goes", async () => {
    const lab = new Lab();
    await leftByPython(lab);
    const { user_data: _, ...plain } = lab.node("0000000010")!;
    await lab.put(paths.node("0000000040"), { ...plain, state: "ready", allocated_to: null });
    await lab.contend(paths.nodeLock("0000000040"), Buffer.from(OWNER));
    await lab.put(paths.node("0000000041"), { ...lab.node("0000000010"), state: "used" });
    await lab.contend(paths.nodeLock("0000000041"), Buffer.from(OWNER));
    await lab.start("a", config({ "max-parallel-jobs": 3 }));
    await lab.until("the first is unlocked", () => lab.children(paths.nodeLock("0000000040")).length === 0);
    await lab.gone("0000000041");
  });

  test("both at once is refused with one line, and taken up when the other is gone", async () => {
    const lab = new Lab();
    await leftByPython(lab);
    const path = await lab.pythonPool("slicer", ["slice"]);
    const { log } = await lab.start("a", config({ "max-parallel-jobs": 3 }));
    const refusals = () =>
      log.lines.filter(({ facts }) => String((facts as { error?: string }).error).includes("not Nodeyard's"));
    expect(refusals()).toHaveLength(1);
    expect(String((refusals()[0]!.facts as { error: string }).error)).toMatch(
      /^provider slicer is also served by a launcher that is not Nodeyard's \(old\.example-PoolWorker\.slicer-main-0123\): stop that launcher/,
    );
    const asked = await lab.slice();
    await lab.run(5_000);
    expect(lab.request(asked)?.state).toBe("requested");
    expect(lab.children("/nodeyard/slots")).toEqual([]);
    await lab.settle(lab.other.delete(paths.request(asked)));
    await lab.settle(lab.other.delete(path));
    await lab.until("our pool is registered", () => lab.pools().length === 1, 90_000);
    expect(lab.place(await lab.get())).toEqual({ backing: "0000000010", slot: 1 });
  });

  test("one that comes later ends our service until it is gone", async () => {
    const lab = new Lab();
    await lab.start("a", config());
    await lab.get();
    const path = await lab.pythonPool("slicer", ["slice"]);
    await lab.until("our pool has left", () => lab.pools().length === 1, 10_000);
    const asked = await lab.slice();
    await lab.run(3_000);
    expect(lab.request(asked)?.state).toBe("requested");
    await lab.settle(lab.other.delete(paths.request(asked)));
    await lab.settle(lab.other.delete(path));
    await lab.until("our pool is back", () => lab.pools().length === 1, 90_000);
    await lab.get();
    lab.check();
  });

  test("one of ours is not taken for it, however slowly it comes back after a lost session", async () => {
    const lab = new Lab();
    await lab.start("a", config());
    const { tree } = await lab.start("b", config());
    await lab.get();
    lab.fault = ({ client, kind, path }) =>
      client === "b" && kind === "write" && path.startsWith("/nodeyard/members/")
        ? { delayMs: 5_000 }
        : undefined;
    tree.expire();
    await lab.run(20_000);
    expect(lab.pools()).toHaveLength(2);
    for (const { log } of lab.members) expect(JSON.stringify(log.lines)).not.toContain("not Nodeyard's");
    await lab.get();
    lab.check();
  });
});
