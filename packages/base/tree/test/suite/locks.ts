import { systemRandom as random } from "@nodeyard/runtime";
import { expect } from "vitest";
import type { Tree } from "../../src/contract.ts";
import { NoNode } from "../../src/errors.ts";
import { LockTimeout, lock, tryLock } from "../../src/lock.ts";
import { bytes, type Context } from "./kit.ts";

const MAKE = { random, createParent: "parent-only" } as const;

/** Locks: one holder, an order, a fence, and nothing that stays behind. */
export function locks({ check, has }: Context): void {
  const line = async (tree: Tree, root: string) => {
    await tree.sync(root);
    return tree.children(`${root}/lock`);
  };

  check("the second gets nothing, and leaves nothing in the line", async ({ tree, root, other }) => {
    const second = await other();
    const first = await tryLock(tree, `${root}/lock`, { ...MAKE, identifier: "me" });
    expect(await tryLock(second, `${root}/lock`, { random })).toBeUndefined();
    expect(await line(tree, root)).toEqual([first!.contender.slice(`${root}/lock/`.length)]);
    expect(Buffer.from((await tree.get(first!.contender)).data).toString()).toBe("me");
    await first!.release();
    await first!.release();
    expect(await tryLock(second, `${root}/lock`, { random })).toBeDefined();
  });

  check("an object that is gone is not brought back", async ({ tree, root }) => {
    await expect(tryLock(tree, `${root}/gone/lock`, MAKE)).rejects.toThrow(NoNode);
    await expect(tryLock(tree, `${root}/lock`, { random })).rejects.toThrow(NoNode);
    expect(await tree.children(root)).toEqual([]);
  });

  check(
    "every contender waits for its turn, in the order of the line",
    async ({ tree, root, other, target, until }) => {
      const { clock } = target;
      const first = await tryLock(tree, `${root}/lock`, MAKE);
      const order: number[] = [];
      const waiting: Promise<unknown>[] = [];
      for (const index of [0, 1, 2]) {
        const attempt = lock(await other(), `${root}/lock`, { clock, random }).then(async (held) => {
          order.push(index);
          await held.release();
        });
        waiting.push(attempt);
        await until("it stands in line", async () => (await line(tree, root)).length === index + 2);
      }
      expect(order).toEqual([]);
      await first!.release();
      await Promise.all(waiting);
      expect(order).toEqual([0, 1, 2]);
    },
  );

  check("a contender that is given up leaves the line", async ({ tree, root, other, target, until }) => {
    const { clock } = target;
    await tryLock(tree, `${root}/lock`, MAKE);
    const second = await other();
    const late = lock(second, `${root}/lock`, { clock, random, deadlineMs: 50 });
    await expect(late).rejects.toThrow(LockTimeout);
    const ended = new AbortController();
    const waiting = lock(second, `${root}/lock`, { clock, random, signal: ended.signal });
    ended.abort(new Error("enough"));
    await expect(waiting).rejects.toMatchObject({ code: "tree.call_ended" });
    await until("its contenders are gone", async () => (await line(tree, root)).length === 1);
  });

  check("a lock that was released stops the commit that it fences", async ({ tree, root }) => {
    const held = await tryLock(tree, `${root}/lock`, MAKE);
    await tree.commit([held!.fence, { op: "set", path: root, data: bytes("in time") }]);
    await held!.release();
    const write = tree.commit([held!.fence, { op: "set", path: root, data: bytes("late") }]);
    await expect(write).rejects.toMatchObject({ code: "tree.commit_failed", index: 0 });
    expect((await tree.stat(root))?.version).toBe(1);
  });

  if (has("expire"))
    check("a waiting contender stands in line again after the end of its session", async (place) => {
      const { tree, root, other, target, until } = place;
      const first = await tryLock(tree, `${root}/lock`, MAKE);
      const second = await other();
      const waiting = lock(second, `${root}/lock`, { clock: target.clock, random });
      await until("it stands in line", async () => (await line(tree, root)).length === 2);
      const { epoch } = second.session();
      await target.expire!(second);
      await until("a new session", () => second.session().epoch > epoch);
      await first!.release();
      const held = await waiting;
      expect(held.epoch).toBe(second.session().epoch);
      expect((await second.stat(held.contender))?.ephemeralOwner).toBe(second.session().id);
    });

  if (has("disconnect"))
    check("a waiting contender keeps its place while its connection breaks", async (place) => {
      const { tree, root, other, target, until } = place;
      const first = await tryLock(tree, `${root}/lock`, MAKE);
      const second = await other();
      const waiting = lock(second, `${root}/lock`, { clock: target.clock, random });
      await until("it stands in line", async () => (await line(tree, root)).length === 2);
      const contenders = await line(tree, root);
      await target.disconnect!(second);
      await first!.release();
      const held = await waiting;
      expect(held.epoch).toBe(1);
      expect(contenders).toContain(held.contender.slice(`${root}/lock/`.length));
    });
}
