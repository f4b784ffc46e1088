import { seededRandom, systemClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { Change } from "../../src/contract.ts";
import { createMemoryTree } from "../../src/memory/index.ts";

test("a feed tells own writes and those of others", async () => {
  const cluster = createMemoryTree({ clock: systemClock, random: seededRandom(1) });
  const a = cluster.connect();
  const b = cluster.connect();
  const changes: Change[] = [];
  await a.create("/x", Buffer.from("1"));
  const feed = a.feed("/x", { interest: () => "data", onChange: (change) => changes.push(change) });
  await feed.synced;
  await a.set("/x", Buffer.from("2"));
  await b.create("/x/y", Buffer.from("3"));
  await b.delete("/x/y");
  await a.sync("/");
  a.disconnect();
  await b.set("/x", Buffer.from("4"));
  await feed.resync();
  const short = changes.map((c) =>
    c.type === "put" ? `${c.path}=${Buffer.from(c.data ?? []).toString()}` : c.type,
  );
  expect(short.filter((s) => !s.startsWith("/x/y") && s !== "remove")).toEqual([
    "/x=1",
    "synced",
    "/x=2",
    "gap",
    "/x=4",
    "synced",
  ]);
  await a.close();
});
