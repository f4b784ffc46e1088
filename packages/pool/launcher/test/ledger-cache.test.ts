import { paths } from "@nodeyard/model";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { createMemoryTree, ensurePath, type Op, requestBytes, TooLarge, type Tree } from "@nodeyard/tree";
import { beforeEach, expect, test } from "vitest";
import { scopeOf } from "../src/limits/holdings.ts";
import { LedgerCache } from "../src/limits/ledger-cache.ts";
import { ledgerPath, readLedger } from "../src/limits/ledger-znode.ts";

const scope = scopeOf.pool("cloud/main");
const handles = { clock: systemClock, random: seededRandom(1) };

let tree: Tree;
beforeEach(async () => {
  tree = createMemoryTree(handles).connect();
  await ensurePath(tree, paths.nodes);
});

/** Creates `sizes.length` records of these sizes at once, counted. */
function createAll(
  through: Tree,
  sizes: readonly number[],
): Promise<readonly PromiseSettledResult<unknown>[]> {
  const book = new LedgerCache(through, handles, (scopes) =>
    Promise.all(scopes.map((one) => readLedger(through, one, ["instances"], async () => ({})))),
  );
  const posting = { scope, amount: { instances: 1 }, limit: { instances: 1_000 } };
  return Promise.allSettled(
    sizes.map((size) =>
      book.commit(
        [posting],
        [{ op: "create", path: `${paths.nodes}/`, data: new Uint8Array(size), sequential: true }],
      ),
    ),
  );
}

async function ledger(): Promise<unknown> {
  return JSON.parse(Buffer.from((await tree.get(ledgerPath(scope))).data).toString());
}

const failed = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.flatMap((result, index) =>
    result.status === "rejected" ? [{ index, code: result.reason.code }] : [],
  );

test("what is together too long for one commit goes in several", async () => {
  const before = tree.counters.calls;
  const results = await createAll(tree, new Array(64).fill(40_000));
  expect(failed(results)).toEqual([]);
  expect((await tree.children(paths.nodes)).length).toBe(64);
  expect(await ledger()).toMatchObject({ instances: 64 });
  // 2.6 MB in requests of 1 MiB at most, and what it takes to make the ledger.
  expect(tree.counters.calls - before).toBeLessThan(12);
});

test("what is alone too long fails by itself and says so", async () => {
  const results = await createAll(tree, [1_000, 2_000_000, 1_000]);
  expect(failed(results)).toEqual([{ index: 1, code: "tree.too_large" }]);
  expect(await ledger()).toMatchObject({ instances: 2 });
});

test("a commit that is refused for its size is halved until it passes", async () => {
  // As behind a chroot that is longer than the count of a request allows for.
  const limit = 100_000;
  const refused: number[] = [];
  const tight = new Proxy(tree, {
    get: (target, name) => {
      if (name === "commit")
        return async (ops: readonly Op[]) => {
          if (requestBytes(ops) <= limit) return target.commit(ops);
          refused.push(ops.length);
          throw new TooLarge("a commit", requestBytes(ops), limit);
        };
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const results = await createAll(tight, [...new Array(64).fill(10_000), 200_000]);
  expect(failed(results)).toEqual([{ index: 64, code: "tree.too_large" }]);
  expect(await ledger()).toMatchObject({ instances: 64 });
  expect(refused.length).toBeLessThan(30);
});

test("what does not fit by an old sum is refused only by the ledger as it is", async () => {
  const bookOf = () =>
    new LedgerCache(tree, handles, (scopes) =>
      Promise.all(scopes.map((one) => readLedger(tree, one, ["instances"], async () => ({})))),
    );
  const [own, others] = [bookOf(), bookOf()];
  const take = (book: LedgerCache, instances: number) =>
    book.commit(
      [{ scope, amount: { instances }, limit: { instances: 1 } }],
      [{ op: "check", path: paths.nodes }],
    );
  await take(own, 1);
  await take(others, -1);
  await take(own, 1);
  expect(await ledger()).toMatchObject({ instances: 1 });
  await expect(take(own, 1)).rejects.toMatchObject({ code: "launcher.limit_reached" });
});
