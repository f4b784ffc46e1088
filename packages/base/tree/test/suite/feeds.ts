import { seededRandom } from "@nodeyard/runtime";
import { expect } from "vitest";
import type { Tree } from "../../src/contract.ts";
import { bytes, type Context, Follower, type Place, text } from "./kit.ts";

/** Tests of feeds: every guarantee of the contract. */
export function feeds({ check, has }: Context): void {
  check("a feed tells what is there, then synced", async ({ tree, root }) => {
    await tree.create(`${root}/a`, bytes("1"));
    await tree.create(`${root}/a/b`, bytes("2"));
    const follower = new Follower();
    const feed = tree.feed(root, follower.options());
    await feed.synced;
    expect([...follower.picture].sort()).toEqual([
      [root, ""],
      [`${root}/a`, "1"],
      [`${root}/a/b`, "2"],
    ]);
    expect(follower.said().at(-1)).toBe("synced");
    expect(follower.said().includes("gap")).toBe(false);
    await feed.close();
  });

  check("the root need not exist, and may come and go", async ({ tree, root, other, until }) => {
    const second = await other();
    const follower = new Follower();
    const feed = tree.feed(`${root}/later`, follower.options());
    await feed.synced;
    expect(follower.said()).toEqual(["synced"]);
    await second.create(`${root}/later`, bytes("x"));
    await until("it is told", () => follower.picture.get(`${root}/later`) === "x");
    await second.delete(`${root}/later`);
    await until("its end is told", () => follower.picture.size === 0);
    await feed.close();
  });

  check("own writes are reported once, before their promise, and without a read", async ({ tree, root }) => {
    const follower = new Follower();
    const feed = tree.feed(root, follower.options());
    await feed.synced;
    await tree.sync(root);
    const from = follower.changes.length;
    const { calls } = tree.counters;
    const { path } = await tree.create(`${root}/s-`, bytes("1"), { sequential: true });
    expect(follower.picture.get(path)).toBe("1");
    await tree.set(path, bytes("2"));
    expect(follower.picture.get(path)).toBe("2");
    await tree.commit([
      { op: "set", path, data: bytes("3") },
      { op: "create", path: `${path}/lock` },
      { op: "create", path: `${path}/lock/c-`, ephemeral: true, sequential: true },
    ]);
    expect(follower.picture.get(path)).toBe("3");
    await tree.delete(`${path}/lock/c-0000000000`);
    await tree.sync(root);
    await tree.sync(root);
    expect(follower.said(from)).toEqual([
      `put ${path}=1`,
      `put ${path}=2`,
      `put ${path}=3`,
      `put ${path}/lock=`,
      `put ${path}/lock/c-0000000000=`,
      `remove ${path}/lock/c-0000000000`,
    ]);
    expect(tree.counters.calls - calls, "four writes and two syncs").toBe(6);
    const { version, mzxid, mtime } = follower.stats.get(path)!;
    expect(await tree.stat(path)).toMatchObject({ version, mzxid, mtime });
    await feed.close();
  });

  check("a write that was refused tells nothing", async ({ tree, root }) => {
    await tree.create(`${root}/a`, bytes("1"));
    const follower = new Follower();
    const feed = tree.feed(root, follower.options());
    await feed.synced;
    const from = follower.changes.length;
    await tree.set(`${root}/a`, bytes("2"), { version: 8 }).catch(() => undefined);
    await tree
      .commit([
        { op: "delete", path: `${root}/a` },
        { op: "check", path: `${root}/no` },
      ])
      .catch(() => undefined);
    await tree.sync(root);
    expect(follower.said(from)).toEqual([]);
    await feed.close();
  });

  check("interest decides what is reported, and what is read", async ({ tree, root, other, until }) => {
    const second = await other();
    await tree.create(`${root}/data`, bytes("1"));
    await tree.create(`${root}/name`, bytes("2"));
    await tree.create(`${root}/none`, bytes("3"));
    await tree.create(`${root}/none/data`, bytes("4"));
    const follower = new Follower();
    const interest = (path: string) =>
      path.endsWith("/data") ? "data" : path.endsWith("/name") ? "name" : "none";
    const feed = tree.feed(root, follower.options({ interest }));
    await feed.synced;
    expect(follower.said().slice(0, -1).sort()).toEqual([
      `put ${root}/data=1`,
      `put ${root}/name=`,
      `put ${root}/none/data=4`,
    ]);
    await second.set(`${root}/name`, bytes("22"));
    await second.set(`${root}/none`, bytes("33"));
    await second.set(`${root}/data`, bytes("11"));
    await until("the data is told", () => follower.picture.get(`${root}/data`) === "11");
    await second.delete(`${root}/name`);
    await until("the name is gone", () => !follower.picture.has(`${root}/name`));
    expect(follower.picture.size).toBe(2);
    expect(follower.faults).toEqual([]);
    await feed.close();
  });

  check("a closed feed tells nothing, and its synced rejects if it was not", async ({ tree, root }) => {
    const follower = new Follower();
    const feed = tree.feed(root, follower.options());
    const { synced } = feed;
    await feed.close();
    await synced.catch(() => undefined);
    const from = follower.changes.length;
    await tree.create(`${root}/a`);
    await tree.sync(root);
    expect(follower.said(from)).toEqual([]);
    await expect(feed.resync()).rejects.toMatchObject({ code: "tree.closed" });
  });

  check("resync ends with synced, and tells nothing where nothing differs", async ({ tree, root }) => {
    await tree.create(`${root}/a`, bytes("1"));
    const follower = new Follower();
    const feed = tree.feed(root, follower.options());
    await feed.synced;
    const from = follower.changes.length;
    await feed.resync();
    // A store that can lose nothing may spare the gap.
    expect(follower.said(from).filter((word) => word !== "gap")).toEqual(["synced"]);
    expect(follower.said(from).at(-1)).toBe("synced");
    await feed.close();
  });

  check("several feeds, one within another, each tell everything", async ({ tree, root, other, until }) => {
    const second = await other();
    await tree.create(`${root}/in`);
    const [outer, inner] = [new Follower(), new Follower()];
    const all = [tree.feed(root, outer.options()), tree.feed(`${root}/in`, inner.options())];
    await Promise.all(all.map((feed) => feed.synced));
    await tree.create(`${root}/in/own`, bytes("1"));
    await second.create(`${root}/in/other`, bytes("2"));
    for (const follower of [outer, inner])
      await until("both are told", () => follower.picture.get(`${root}/in/other`) === "2");
    expect(inner.picture.get(`${root}/in/own`)).toBe("1");
    await all[1]?.close();
    await second.set(`${root}/in/other`, bytes("3"));
    await until("the outer one goes on", () => outer.picture.get(`${root}/in/other`) === "3");
    expect([...outer.faults, ...inner.faults]).toEqual([]);
    await all[0]?.close();
  });

  check("many writers: versions grow, and the last state arrives", (place) => storm(place, false));

  if (has("disconnect")) {
    check("many writers and a connection that breaks: the last state arrives", (place) => storm(place, true));

    check("after a disconnect come gap, the differences, synced", async (place) => {
      const { tree, root, other, target, until } = place;
      const second = await other();
      await tree.create(`${root}/changes`, bytes("1"));
      await tree.create(`${root}/goes`);
      await tree.create(`${root}/stays`, bytes("1"));
      const follower = new Follower();
      const feed = tree.feed(root, follower.options());
      await feed.synced;
      const from = follower.changes.length;
      await target.disconnect?.(tree);
      await second.set(`${root}/changes`, bytes("2"));
      await second.delete(`${root}/goes`);
      await until("synced again", () => follower.said(from).includes("synced"));
      await feed.resync();
      const said = follower.said(from);
      expect(said[0]).toBe("gap");
      expect(said.filter((word) => word.includes("/")).sort()).toEqual([
        `put ${root}/changes=2`,
        `remove ${root}/goes`,
      ]);
      await feed.close();
    });
  }

  async function storm({ tree, root, other, target, until }: Place, breaks: boolean): Promise<void> {
    const random = seededRandom(42);
    const sessions = [tree, await other(), await other()];
    const follower = new Follower();
    const feed = tree.feed(root, follower.options({ concurrency: 4 }));
    await feed.synced;
    /** All sessions keep writing while the connection breaks, however long that takes, so that it breaks while writes are in flight. */
    const breakUnder = async (writers: readonly Tree[]) => {
      let over = false;
      const write = async (session: Tree) => {
        while (!over) await anyWrite(session, root, random.float(), random.float()).catch(() => undefined);
      };
      const writing = writers.flatMap((session) => [write(session), write(session)]);
      await target.disconnect?.(tree);
      over = true;
      await Promise.all(writing);
    };
    for (let round = 0; round < 12; round++) {
      const writes: Promise<unknown>[] = [];
      for (let index = 0; index < 60; index++) {
        const session = sessions[Math.floor(random.float() * sessions.length)] as Tree;
        writes.push(anyWrite(session, root, random.float(), random.float()));
      }
      const settled = Promise.allSettled(writes);
      if (breaks && round % 4 === 1) await breakUnder(sessions);
      await settled;
    }
    await until("connected", () => tree.session().state === "connected");
    await until("the picture is the tree", async () => {
      await tree.sync(root);
      const truth = await read(tree, root);
      return JSON.stringify([...truth].sort()) === JSON.stringify([...follower.picture].sort());
    });
    for (const [path, stat] of follower.stats) expect((await tree.stat(path))?.mzxid, path).toBe(stat.mzxid);
    expect(follower.faults).toEqual([]);
    await feed.close();
  }
}

function anyWrite(session: Tree, root: string, kind: number, place: number): Promise<unknown> {
  const path = `${root}/p${Math.floor(place * 6)}`;
  const data = bytes(`${kind}`);
  if (kind < 0.25) return session.create(path, data);
  if (kind < 0.65) return session.set(path, data);
  if (kind < 0.8) return session.delete(path);
  if (kind < 0.9)
    return session.commit([
      { op: "set", path, data },
      { op: "create", path: `${root}/q-`, data, sequential: true },
    ]);
  return session.commit([
    { op: "delete", path },
    { op: "create", path, data },
  ]);
}

/** The whole subtree, read znode by znode. */
async function read(tree: Tree, path: string): Promise<Map<string, string>> {
  const found = new Map([[path, text((await tree.get(path)).data)]]);
  for (const name of await tree.children(path))
    for (const [below, data] of await read(tree, `${path}/${name}`)) found.set(below, data);
  return found;
}
