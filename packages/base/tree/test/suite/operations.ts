import { expect } from "vitest";
import { BadArguments, BadVersion, NodeExists, NoNode, NotEmpty, TooLarge } from "../../src/errors.ts";
import { requestBytes } from "../../src/request-size.ts";
import { bytes, type Context, text } from "./kit.ts";

/** Single operations: what they do, what they show, what they refuse. */
export function operations({ check }: Context): void {
  const code = (kind: new (path: string, ...rest: never[]) => { readonly code: string }) => ({
    code: new (kind as unknown as new (path: string) => { readonly code: string })("/").code,
    outcome: "none",
  });

  check("create, get, set and delete show one znode's life", async ({ tree, root }) => {
    const made = await tree.create(`${root}/a`, bytes("one"));
    expect(made.path).toBe(`${root}/a`);
    expect(made.stat).toMatchObject({ version: 0, dataLength: 3, numChildren: 0, ephemeralOwner: 0n });
    const set = await tree.set(`${root}/a`, bytes("three"), { version: 0 });
    expect(set).toMatchObject({ version: 1, dataLength: 5, czxid: made.stat.czxid });
    expect(set.mzxid).toBeGreaterThan(made.stat.mzxid);
    const got = await tree.get(`${root}/a`);
    expect(text(got.data)).toBe("three");
    expect(got.stat).toEqual(set);
    expect(await tree.stat(`${root}/a`)).toEqual(set);
    await tree.delete(`${root}/a`, { version: 1 });
    expect(await tree.stat(`${root}/a`)).toBeUndefined();
  });

  check(
    "calls under way are listed until they are answered, refusals too",
    async ({ tree, root, target }) => {
      const before = tree.underWay().length;
      const made = tree.commit([
        { op: "create", path: `${root}/a` },
        { op: "create", path: `${root}/b` },
      ]);
      const refused = tree.delete(`${root}/none`);
      const calls = tree.underWay().slice(before);
      expect(calls).toMatchObject([
        { what: "commit", path: `${root}/a`, operations: 2 },
        { what: "delete", path: `${root}/none`, operations: 1 },
      ]);
      expect((calls[0]?.since ?? 0) <= target.clock.monotonic()).toBe(true);
      await Promise.allSettled([made, refused]);
      expect(tree.underWay().length).toBe(before);
    },
  );

  check("a znode without data is empty, not absent", async ({ tree, root }) => {
    await tree.create(`${root}/empty`);
    expect((await tree.get(`${root}/empty`)).data.length).toBe(0);
  });

  check("refusals have their own errors, and change nothing", async ({ tree, root }) => {
    await tree.create(`${root}/a`, bytes("x"));
    await tree.create(`${root}/a/b`);
    const zxid = (await tree.stat(`${root}/a`))?.mzxid;
    await expect(tree.create(`${root}/a`)).rejects.toMatchObject(code(NodeExists));
    await expect(tree.create(`${root}/none/b`)).rejects.toMatchObject(code(NoNode));
    await expect(tree.get(`${root}/none`)).rejects.toMatchObject(code(NoNode));
    await expect(tree.children(`${root}/none`)).rejects.toMatchObject(code(NoNode));
    await expect(tree.set(`${root}/none`, bytes(""))).rejects.toMatchObject(code(NoNode));
    await expect(tree.set(`${root}/a`, bytes(""), { version: 7 })).rejects.toMatchObject(code(BadVersion));
    await expect(tree.delete(`${root}/none`)).rejects.toMatchObject(code(NoNode));
    await expect(tree.delete(`${root}/a`)).rejects.toMatchObject(code(NotEmpty));
    await expect(tree.delete(`${root}/a/b`, { version: 3 })).rejects.toMatchObject(code(BadVersion));
    expect((await tree.stat(`${root}/a`))?.mzxid).toBe(zxid);
  });

  check("paths that ZooKeeper would refuse are refused", async ({ tree, root }) => {
    for (const path of [
      "",
      "relative",
      `${root}/`,
      `${root}//a`,
      `${root}/.`,
      `${root}/..`,
      `${root}/\u0000`,
    ])
      await expect(tree.create(path), JSON.stringify(path)).rejects.toMatchObject(code(BadArguments));
  });

  check("children are names", async ({ tree, root }) => {
    await tree.create(`${root}/a`);
    await tree.create(`${root}/b`);
    await tree.create(`${root}/a/deep`);
    expect([...(await tree.children(root))].sort()).toEqual(["a", "b"]);
    expect(await tree.stat(root)).toMatchObject({ numChildren: 2, version: 0 });
  });

  check("sequence numbers count every child ever made, and never go back", async ({ tree, root }) => {
    const name = async () => {
      const { path } = await tree.create(`${root}/s-`, bytes(""), { sequential: true });
      return path.slice(root.length + 1);
    };
    expect(await name()).toBe("s-0000000000");
    expect(await name()).toBe("s-0000000001");
    await tree.delete(`${root}/s-0000000001`);
    expect(await name(), "a deleted child still counts").toBe("s-0000000002");
    await tree.create(`${root}/plain`);
    expect(await name(), "a plain child counts").toBe("s-0000000004");
    const bare = await tree.create(`${root}/`, bytes(""), { sequential: true });
    expect(bare.path).toBe(`${root}/0000000005`);
  });

  check("a parent's counters move with its children", async ({ tree, root }) => {
    const before = await tree.stat(root);
    const { stat } = await tree.create(`${root}/a`);
    expect(await tree.stat(root)).toMatchObject({ pzxid: stat.czxid, mzxid: before?.mzxid, cversion: 1 });
    await tree.delete(`${root}/a`);
    expect(await tree.stat(root)).toMatchObject({ numChildren: 0, cversion: 2, version: 0 });
  });

  check("a write above the limit is refused, and costs nobody the connection", async ({ tree, root }) => {
    const path = `${root}/most`;
    const limit = tree.capabilities.maxRequestBytes;
    const data = new Uint8Array(limit - requestBytes([{ op: "create", path }]));
    await tree.create(path, data);
    expect((await tree.get(path)).data.length).toBe(data.length);
    const before = tree.session();
    const refused = code(TooLarge);
    const more = new Uint8Array(data.length + 1);
    const beside = tree.create(`${root}/beside`);
    await expect(tree.set(path, more)).rejects.toMatchObject(refused);
    await expect(tree.commit([{ op: "set", path, data: more }])).rejects.toMatchObject(refused);
    await beside;
    expect(tree.session()).toMatchObject({ id: before.id, epoch: before.epoch, state: "connected" });
    expect(await tree.stat(path)).toMatchObject({ version: 0, dataLength: data.length });
  });

  check("so is a commit whose parts fit and whose sum does not, as a whole", async ({ tree, root }) => {
    const paths = ["a", "b", "c", "d"].map((name) => `${root}/${name}`);
    const data = new Uint8Array(Math.ceil(tree.capabilities.maxRequestBytes / paths.length));
    const ops = paths.map((path) => ({ op: "create", path, data }) as const);
    await expect(tree.commit(ops)).rejects.toMatchObject(code(TooLarge));
    expect(await tree.children(root)).toEqual([]);
    await tree.commit(ops.slice(1));
    expect((await tree.children(root)).length).toBe(3);
  });

  check("calls that are started in order are carried out in order", async ({ tree, root }) => {
    const path = `${root}/n`;
    const calls: Promise<unknown>[] = [tree.create(path, bytes("0"))];
    for (let index = 1; index <= 50; index++)
      calls.push(tree.set(path, bytes(String(index)), { version: index - 1 }));
    const last = tree.get(path);
    await Promise.all(calls);
    expect(text((await last).data)).toBe("50");
  });

  check("what one session wrote, another sees after sync", async ({ tree, root, other }) => {
    const second = await other();
    await tree.create(`${root}/a`, bytes("x"));
    await second.sync(root);
    expect(text((await second.get(`${root}/a`)).data)).toBe("x");
    // Also for a path that does not exist: the deletion may be what the other session must see.
    await tree.delete(`${root}/a`);
    await second.sync(`${root}/a`);
    expect(await second.stat(`${root}/a`)).toBeUndefined();
  });

  check("an aborted call ends, and was not carried out", async ({ tree, root }) => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(tree.create(`${root}/a`, bytes(""), { signal })).rejects.toMatchObject({
      code: "tree.call_ended",
      outcome: "none",
    });
    expect(await tree.stat(`${root}/a`)).toBeUndefined();
  });

  check("the tree's clock is known after a write", async ({ tree, root, target }) => {
    const { stat } = await tree.create(`${root}/a`);
    const ours = target.clock.now() + tree.clockOffset();
    expect(Math.abs(stat.mtime - ours)).toBeLessThan(5_000);
  });
}
