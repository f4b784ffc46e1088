import { systemClock, systemRandom } from "@nodeyard/runtime";
import { expect, test, vi } from "vitest";
import { Committer } from "../../src/embedded/committer.ts";
import { TreeCore } from "../../src/embedded/core.ts";
import { SessionTree } from "../../src/embedded/session-tree.ts";
import type { Batch, Store } from "../../src/embedded/store.ts";
import { StoreFailed } from "../../src/errors.ts";

/** A disk whose commits end when the test says so. */
function slowStore() {
  const writes: { batch: Batch; done: () => void; fail: (error: Error) => void }[] = [];
  const store: Store = {
    commit: (batch) => new Promise((resolve, reject) => writes.push({ batch, done: resolve, fail: reject })),
    backup: async () => undefined,
    close: async () => undefined,
  };
  return { store, writes };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("writes that arrive while one commit runs share the next", async () => {
  const { store, writes } = slowStore();
  const committer = new Committer(store, () => undefined);
  const reported: string[] = [];
  committer.mark(1n);
  committer.release(() => reported.push("first"));
  await turn();
  for (let i = 2; i < 100; i++) {
    committer.znode("/same", undefined);
    committer.mark(BigInt(i));
    committer.release(() => reported.push(`w${i}`));
  }
  await turn();
  expect(writes.length).toBe(1);
  expect(reported).toEqual([]);
  writes[0]!.done();
  await turn();
  expect(reported).toEqual(["first"]);
  expect(writes.length).toBe(2);
  expect(writes[1]!.batch).toMatchObject({ zxid: 99n, deletes: ["/same"] });
  writes[1]!.done();
  await turn();
  expect(reported.length).toBe(99);
  expect(reported.at(-1)).toBe("w99");
});

test("a read waits for the writes that it may show, and only for those", async () => {
  const { store, writes } = slowStore();
  const committer = new Committer(store, () => undefined);
  let read = 0;
  committer.release(() => read++);
  expect(read).toBe(1);
  committer.mark(1n);
  committer.release(() => read++);
  expect(read).toBe(1);
  await turn();
  // Gathered after the read: not its concern.
  committer.mark(2n);
  writes[0]!.done();
  await turn();
  expect(read).toBe(2);
  expect(writes.length).toBe(2);
});

test("what was released by a released output keeps its place", async () => {
  const { store, writes } = slowStore();
  const committer = new Committer(store, () => undefined);
  const reported: number[] = [];
  committer.mark(1n);
  committer.release(() => {
    reported.push(1);
    committer.release(() => reported.push(3));
  });
  committer.release(() => reported.push(2));
  await turn();
  writes[0]!.done();
  await turn();
  expect(reported).toEqual([1, 2, 3]);
});

test("after a failed commit nothing is acknowledged any more", async () => {
  const { store, writes } = slowStore();
  const failures: unknown[] = [];
  const committer = new Committer(store, (error) => failures.push(error));
  const reported: unknown[] = [];
  committer.mark(1n);
  committer.release((error) => reported.push(error));
  await turn();
  committer.mark(2n);
  committer.release((error) => reported.push(error));
  writes[0]!.fail(new Error("disk full"));
  await turn();
  expect(reported.length).toBe(2);
  for (const error of reported)
    expect(error).toMatchObject({ code: "tree.store_failed", outcome: "unknown" });
  expect(failures.length).toBe(1);
  expect(failures[0]).toBeInstanceOf(StoreFailed);
  committer.mark(3n);
  committer.release((error) => reported.push(error));
  expect(reported.length).toBe(3);
  expect(reported[2]).toBeInstanceOf(StoreFailed);
  await turn();
  expect(writes.length).toBe(1);
});

test("a listener that throws does not keep the failure from the others", async () => {
  const { store, writes } = slowStore();
  const reported: string[] = [];
  const surfaced: (() => void)[] = [];
  const committer = new Committer(store, () => reported.push("failure"));
  committer.mark(1n);
  committer.release(() => {
    throw new Error("a bug");
  });
  committer.release((error) => reported.push(error?.code ?? "none"));
  await turn();
  writes[0]!.fail(new Error("no space left on device"));
  vi.stubGlobal("queueMicrotask", (fn: () => void) => surfaced.push(fn));
  await turn();
  vi.unstubAllGlobals();
  expect(reported).toEqual(["tree.store_failed", "failure"]);
  expect(surfaced.length).toBe(1);
  expect(surfaced[0]).toThrow("a bug");
});

test("a feed that began on a store that fails is not waited for in vain", async () => {
  const { store, writes } = slowStore();
  const snapshot = { zxid: 0n, boot: 1, znodes: [], sessions: [] };
  const core = new TreeCore(store, snapshot, systemClock, systemRandom);
  const tree = new SessionTree(core, systemClock);
  const feed = tree.feed("/", { interest: () => "data", onChange: () => undefined });
  await turn();
  writes[0]!.fail(new Error("no space left on device"));
  await expect(feed.synced).rejects.toMatchObject({ code: "tree.store_failed" });
  await tree.close();
});
