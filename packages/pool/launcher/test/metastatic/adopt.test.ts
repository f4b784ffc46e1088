import { newRequest, paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { adopt } from "../../src/metastatic/adopt.ts";
import { type Json, launcherConfig } from "../rules/world.ts";
import { Lab, OWNER } from "./lab.ts";

const LEADER = "/nodeyard/elections/leader";
const USE = { label: "slice", slots: 4 };

/** A delivered node as the owner finds it: `change` happens to it before, `unseen` after the view was read. */
async function delivered(change: Json | "gone" | string = {}, unseen?: Json | string) {
  const lab = new Lab();
  const { handles, view } = lab.parts(launcherConfig([]));
  await lab.put(LEADER, "");
  const made = { state: "ready", state_time: 7, created_time: 3, provider: "metal", type: ["large"] };
  const id = await lab.makeNode(made);
  const fulfilled = { state: "fulfilled", node_types: ["large"], requestor: OWNER, nodes: [id] };
  const request = await lab.ask(fulfilled);
  await lab.folder(paths.nodeLock(id));
  await lab.put(paths.node(id), { ...made, allocated_to: request });
  await lab.settle(view.start());
  await lab.run(100);
  if (change === "gone") {
    await lab.settle(lab.other.delete(paths.nodeLock(id)));
    await lab.settle(lab.other.delete(paths.node(id)));
  } else if (typeof change === "string") await lab.put(paths.node(id), change);
  else await lab.put(paths.node(id), { ...lab.node(id), ...change });
  await lab.run(100);
  if (unseen !== undefined) {
    const text = typeof unseen === "string" ? unseen : JSON.stringify({ ...lab.node(id), ...unseen });
    void lab.other.set(paths.node(id), Buffer.from(text));
  }
  const entry = view.requests.byId.get(request) ?? {
    id: request,
    record: newRequest({ state: "fulfilled", nodeTypes: ["large"], nodes: [id], createdTime: 1 }, 1),
    version: 0,
    contenders: [],
  };
  const take = () => lab.settle(adopt(handles, "slicer", entry as never, USE, { op: "check", path: LEADER }));
  return { lab, id, request, take };
}

describe("a delivered node is taken as a backing node", () => {
  test("by one commit: durable lock, record, folder and the end of the request", async () => {
    const { lab, id, request, take } = await delivered();
    expect(await take()).toBe("adopted");
    expect(lab.node(id)?.state).toBe("in-use");
    expect(lab.userData(id)).toMatchObject({
      owner: OWNER,
      label: "slice",
      slots: 4,
      failed: false,
      launched: 7,
    });
    expect(lab.lockData(id)).toEqual([OWNER]);
    expect(lab.children("/nodeyard/slots")).toEqual([id]);
    expect(lab.request(request)).toBeUndefined();
    const last = lab.cluster.log.at(-1)!;
    expect(last.ops.map(({ op }) => op)).toEqual([
      "check",
      "create",
      "set",
      "create",
      "delete",
      "delete",
      "check",
    ]);
  });

  test("not while another client holds its lock: it is tried again later", async () => {
    const { lab, id, request, take } = await delivered();
    const contender = await lab.contend(paths.nodeLock(id));
    expect(await take()).toBe("later");
    expect(lab.request(request)).toBeDefined();
    expect(lab.children(paths.nodeLock(id))).toEqual([contender.split("/").at(-1)]);
  });

  test.each([
    ["it is gone", "gone"],
    ["it was given to somebody else", { allocated_to: "100-0000000099" }],
    ["somebody holds it", { state: "hold" }],
    ["it has failed", { state: "failed" }],
  ] as const)("not when %s: the request ends, and its lock is free", async (_, change) => {
    const { lab, id, request, take } = await delivered(change);
    const before = lab.node(id);
    expect(await take()).toBe("none");
    expect(lab.node(id)).toEqual(before);
    expect(lab.children(paths.nodeLock(id))).toEqual([]);
    expect(lab.children("/nodeyard/slots")).toEqual([]);
    expect(lab.request(request)).toBeUndefined();
  });

  test.each([
    ["a good one", {}],
    ["one that is gone", "gone"],
    ["one that is somebody else's", { allocated_to: "100-0000000099" }],
  ] as const)(
    "not by a launcher that no longer leads: %s stays, and so does the request",
    async (_, change) => {
      const { lab, id, request, take } = await delivered(change);
      const before = lab.node(id);
      await lab.settle(lab.other.delete(LEADER));
      await expect(take()).rejects.toThrow();
      expect(lab.node(id)).toEqual(before);
      expect(lab.children(paths.nodeLock(id))).toEqual([]);
      expect(lab.request(request)).toBeDefined();
    },
  );

  test("as it is in the tree, whatever the view says", async () => {
    const { lab, id, take } = await delivered({}, { state: "hold" });
    expect(await take()).toBe("none");
    expect(lab.node(id)?.state).toBe("hold");
  });

  test("not when its record is invalid: the error is logged, and its lock is free", async () => {
    const { lab, id, request, take } = await delivered({}, "{");
    await expect(take()).rejects.toThrow();
    expect(lab.children(paths.nodeLock(id))).toEqual([]);
    expect(lab.request(request)).toBeDefined();
  });
});
