import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Change, Tree } from "../../src/contract.ts";
import { attachEmbeddedTree } from "../../src/server/index.ts";
import { type Bench, startBench } from "./bench.ts";

let bench: Bench;
let attached: Tree;
const clock = systemClock;
const random = systemRandom;
const bytes = (text: string) => new TextEncoder().encode(text);

beforeEach(async () => {
  bench = await startBench();
  attached = await attachEmbeddedTree({ folder: bench.folder, clock, random });
});
afterEach(async () => {
  await attached.close();
  await bench.close();
});

test("another process finds the tree by its state folder, and both see one tree", async () => {
  const seen: Change[] = [];
  const feed = attached.feed("/both", { interest: () => "data", onChange: (change) => seen.push(change) });
  await feed.synced;
  await bench.tree.commit([
    { op: "create", path: "/both" },
    { op: "create", path: "/both/inside", data: bytes("1") },
  ]);
  const made = await attached.create("/both/outside", bytes("2"), { ephemeral: true });
  expect(made.stat.ephemeralOwner).toBe(attached.session().id);
  const results = await attached.commit([
    { op: "check", path: "/both/inside", version: 0 },
    { op: "set", path: "/both/inside", data: bytes("3") },
  ]);
  expect(results[1].stat.version).toBe(1);
  await expect.poll(() => seen.filter((change) => change.type === "put").length).toBeGreaterThanOrEqual(4);
  expect(new TextDecoder().decode((await bench.tree.get("/both/inside")).data)).toBe("3");
  await feed.close();
});

test("attached processes go on after a restart of the server", async () => {
  await attached.create("/mine", undefined, { ephemeral: true });
  const { epoch, id } = attached.session();
  await bench.restart();
  expect((await attached.stat("/mine"))?.ephemeralOwner).toBe(id);
  expect(attached.session().epoch).toBe(epoch);
});

test("a state folder that no process serves is reported in one line, at once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-nobody-"));
  await expect(attachEmbeddedTree({ folder, clock, random })).rejects.toMatchObject({
    code: "tree.not_served",
    message: `no running Nodeyard serves ${folder}; start one with: nodeyard up`,
  });
  rmSync(folder, { recursive: true });
});
