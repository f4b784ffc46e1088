import type { Resources } from "@nodeyard/driver";
import { encodeNode, newNode, paths } from "@nodeyard/model";
import { seededRandom, sleep, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree, ensurePath, type MemoryCluster, type Tree } from "@nodeyard/tree";
import { beforeEach, expect, test } from "vitest";
import { type Drift, measureDrift } from "../src/limits/drift.ts";
import { scopeOf } from "../src/limits/holdings.ts";
import { LedgerCache } from "../src/limits/ledger-cache.ts";
import { ledgerPath, readLedger } from "../src/limits/ledger-znode.ts";

const scope = scopeOf.pool("cloud/main");
const clock = new VirtualClock();
const handles = { clock, random: seededRandom(1) };
const one = { instances: 1 };
const record = encodeNode(newNode({ state: "ready", provider: "cloud", pool: "main", resources: one }, 1));

let cluster: MemoryCluster;
let trees: readonly [Tree, Tree];
let books: readonly [LedgerCache, LedgerCache];
beforeEach(async () => {
  cluster = createMemoryTree({ ...handles, latencyMs: [1, 4] });
  trees = [cluster.connect(), cluster.connect()];
  const bookOf = (tree: Tree) =>
    new LedgerCache(tree, handles, (scopes) =>
      Promise.all(scopes.map((each) => readLedger(tree, each, ["instances"], async () => ({})))),
    );
  books = [bookOf(trees[0]), bookOf(trees[1])];
  await settle(ensurePath(trees[0], paths.nodes));
});

/** Moves time on until `promise` settles. */
async function settle<T>(promise: Promise<T>): Promise<T> {
  let done = false;
  const over = () => {
    done = true;
  };
  promise.then(over, over);
  while (!done) await clock.advance(1);
  return promise;
}

const create = (book: LedgerCache) =>
  book.commit(
    [{ scope, amount: one, limit: undefined }],
    [{ op: "create", path: `${paths.nodes}/`, data: record, sequential: true }],
  );
const measure = (tree: Tree) => measureDrift(tree, [scope], cluster.znodes.children(paths.nodes) ?? []);
const post = (book: LedgerCache, { amounts, fence }: Drift) =>
  book.commit(
    [...amounts].map(([each, amount]) => ({ scope: each, amount, limit: undefined })),
    [fence],
  );
const ledger = (): Resources => JSON.parse(Buffer.from(cluster.znodes.data(ledgerPath(scope))!).toString());

/** Five records, of which two were removed by somebody who keeps no ledger. */
async function fiveLessTwo(): Promise<void> {
  for (let count = 0; count < 5; count++) await settle(create(books[0]));
  for (const id of (cluster.znodes.children(paths.nodes) ?? []).slice(0, 2))
    await settle(trees[1].delete(paths.node(id)));
  expect(ledger()).toMatchObject({ instances: 5 });
}

test("of two that measured the same, one corrects", async () => {
  await fiveLessTwo();
  const drifts = await settle(Promise.all(trees.map(measure)));
  expect(drifts.map(({ amounts }) => amounts.get(scope))).toEqual([{ instances: -2 }, { instances: -2 }]);
  const posted = await settle(Promise.allSettled(drifts.map((drift, index) => post(books[index]!, drift))));
  expect(posted.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(ledger()).toMatchObject({ instances: 3 });
});

test("what was measured is right after others have written the ledger", async () => {
  await fiveLessTwo();
  const drift = await settle(measure(trees[0]));
  for (let count = 0; count < 4; count++) await settle(create(books[1]));
  await settle(post(books[0], drift));
  expect(ledger()).toMatchObject({ instances: 7 });
  expect(cluster.znodes.children(paths.nodes)?.length).toBe(7);
});

test("a ledger that was counted anew meanwhile is not corrected by what was measured before", async () => {
  await fiveLessTwo();
  const drift = await settle(measure(trees[0]));
  await settle(trees[1].set(ledgerPath(scope), Buffer.from("nonsense")));
  await settle(readLedger(trees[1], scope, ["instances"], async () => ({ instances: 3 })));
  await expect(settle(post(books[0], drift))).rejects.toMatchObject({ reason: { code: "tree.bad_version" } });
  expect(ledger()).toMatchObject({ instances: 3 });
});

test("is found, and found right, while others write the ledger all the time", async () => {
  await fiveLessTwo();
  let end = false;
  const busy = (async () => {
    for (; !end; await sleep(clock, 10)) await create(books[1]);
  })();
  let found = 0;
  for (let round = 0; round < 20; round++) {
    const { amounts } = await settle(measure(trees[0]));
    if (amounts.size === 0) continue;
    expect(amounts.get(scope)).toEqual({ instances: -2 });
    found++;
  }
  end = true;
  await settle(busy);
  expect(found).toBeGreaterThan(15);
});
