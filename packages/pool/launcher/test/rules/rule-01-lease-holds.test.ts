import { leaseRequestor, paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { before, type Call } from "./before-write.ts";
import { contendersOf, foreignNode, isHold } from "./lease-world.ts";

/** Long enough for several tries to hold a node, milliseconds. */
const TRIES_MS = 5_000;

const makesHold = ({ ops }: Pick<Call, "ops">) => ops.some((op) => op.op === "create" && isHold(op.data));
const ofAnother = { allocated_to: "100-0000000099" };

describe("the hold of a lease on a node", () => {
  test("is not asked for while the node is allocated to another request", async () => {
    const { world, id, fulfil, lease, meddle } = await foreignNode();
    meddle(ofAnother);
    await world.run(100);
    await fulfil();
    await world.until("it failed", () => lease()?.state === "failed");
    expect(world.cluster.log.filter(makesHold)).toEqual([]);
    expect(world.node(id)).toMatchObject({ state: "ready", ...ofAnother });
  });

  test("is given up when the node went to another request, which the launcher has not seen yet", async () => {
    const { world, id, fulfil, lease, meddle } = await foreignNode();
    const done = before(world, makesHold, () => meddle(ofAnother));
    await fulfil();
    await world.until("it failed", () => lease()?.state === "failed");
    expect([done(), contendersOf(world, id)]).toEqual([true, []]);
    expect(world.node(id)).toMatchObject({ state: "ready", ...ofAnother });
  });

  test("is given back when the lease cannot have another of its nodes: it has all of them or none", async () => {
    const { world, id, put, lease } = await foreignNode();
    const other = await world.makeNode({ state: "ready", provider: "py", type: ["small"], ...ofAnother });
    await world.run(100);
    await put({ state: "fulfilled", nodes: [id, other] });
    await world.until("it failed", () => lease()?.state === "failed");
    expect([world.node(id)?.state, contendersOf(world, id)]).toEqual(["used", []]);
    expect(world.node(other)).toMatchObject({ state: "ready", ...ofAnother });
  });

  test("waits behind earlier contenders: the node is not in use while another contender is next", async () => {
    const { world, id, fulfil, lease } = await foreignNode();
    const theirs = { ephemeral: true, sequential: true };
    const path = `${paths.nodeLock(id)}/${"b".repeat(32)}__lock__`;
    const done = before(world, makesHold, () => void world.other.create(path, undefined, theirs));
    await fulfil();
    await world.until("somebody came before it", done);
    await world.run(TRIES_MS);
    expect(world.node(id)?.state).toBe("ready");
    const [first, ...behind] = contendersOf(world, id);
    expect([first?.startsWith(path), behind]).toEqual([true, []]);
    await world.settle(world.other.delete(first!));
    await world.until("it is granted", () => lease()?.state === "granted");
    expect(world.node(id)?.state).toBe("in-use");
  });

  test("ends when the lease was released just before the grant", async () => {
    const { world, id, fulfil, release, lease } = await foreignNode();
    const grants = ({ ops }: Call) =>
      ops.some((op) => op.op === "set" && Buffer.from(op.data).includes('"granted"'));
    const done = before(world, grants, () => void release());
    await fulfil();
    await world.until("it is released", done);
    await world.until("it ended", () => lease() === undefined, TRIES_MS);
    expect([world.node(id)?.state, contendersOf(world, id)]).toEqual(["used", []]);
  });

  test("that was never first in line leaves the node to the holder of its lock", async () => {
    const { world, id, asked, fulfil, release, lease } = await foreignNode();
    const theirs = await world.contend(paths.nodeLock(id));
    await world.contend(paths.nodeLock(id), Buffer.from(leaseRequestor(asked.id)));
    await fulfil();
    await world.settle(release());
    await world.until("it ended", () => lease() === undefined);
    expect([world.node(id)?.state, contendersOf(world, id)]).toEqual(["ready", [theirs]]);
  });
});
