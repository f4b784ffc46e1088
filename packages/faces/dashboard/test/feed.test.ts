import { describe, expect, test } from "vitest";
import { Feed } from "../browser/data/feed.ts";
import { Table } from "../browser/data/table.ts";

function start() {
  const node = new Table<unknown>();
  const none = new Table<unknown>();
  const feed = new Feed({
    node,
    request: none,
    lease: none,
    image: none,
    pool: none,
    member: none,
    standing: none,
  });
  const batches: number[] = [];
  node.listen((changes) => void batches.push(changes.length));
  return { node, feed, batches };
}

describe("the stream of events", () => {
  test("is shown at the flush, with the last state of each row", () => {
    const { node, feed, batches } = start();
    feed.put("node", "1", { state: "building" });
    feed.put("node", "1", { state: "ready" });
    feed.put("node", "2", {});
    feed.remove("node", "2");
    expect(node.size).toBe(0);
    feed.flush();
    expect([...node.entries()]).toEqual([["1", { state: "ready" }]]);
    expect(batches).toEqual([1]);
    feed.flush();
    expect(batches).toEqual([1]);
  });

  test("removes after a gap what is not sent again, and keeps it meanwhile", () => {
    const { node, feed } = start();
    for (const id of ["1", "2", "3"]) feed.put("node", id, { id });
    feed.flush();
    feed.begin();
    expect(feed.resyncing).toBe(true);
    feed.put("node", "2", { id: "2" });
    feed.put("node", "3", { id: "3" });
    feed.remove("node", "3");
    feed.flush();
    expect([...node.entries()].map(([id]) => id)).toEqual(["1", "2"]);
    feed.synced();
    feed.flush();
    expect(feed.resyncing).toBe(false);
    expect([...node.entries()].map(([id]) => id)).toEqual(["2"]);
  });

  test("a connection that breaks during the first transfer forgets the rows that it had received", () => {
    const { node, feed } = start();
    feed.begin();
    feed.put("node", "1", {});
    feed.flush();
    feed.begin();
    feed.put("node", "2", {});
    feed.synced();
    feed.flush();
    expect([...node.entries()].map(([id]) => id)).toEqual(["2"]);
  });
});

test("a tab that comes while everything is sent gets only what is known not to be gone", () => {
  const { feed } = start();
  for (const id of ["1", "2"]) feed.put("node", id, {});
  expect(feed.isNamed("node", "1")).toBe(true);
  feed.begin();
  feed.put("node", "2", {});
  expect([feed.isNamed("node", "1"), feed.isNamed("node", "2")]).toEqual([false, true]);
  feed.synced();
  expect(feed.isNamed("node", "2")).toBe(true);
});
