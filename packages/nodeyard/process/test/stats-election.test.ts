import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Election } from "@nodeyard/coordination";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { Live, memoryLog } from "@nodeyard/telemetry";
import { type EmbeddedTree, ensurePath, openEmbeddedTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../../pool/launcher/test/rig.ts";

const STATS = "/nodepool/elections/stats";
const folder = mkdtempSync(join(tmpdir(), "nodeyard-election-"));
let tree: EmbeddedTree;

beforeEach(async () => {
  tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
});
afterEach(async () => {
  await tree.close();
  rmSync(folder, { recursive: true, force: true });
});

test("launchers of both kinds elect the one that sends figures to statsd", async () => {
  await ensurePath(tree, STATS);
  // As kazoo's Lock, which its Election is made of, makes it.
  const kazoo = { ephemeral: true, sequential: true };
  const foreign = await tree.create(`${STATS}/${"e".repeat(32)}__lock__`, Buffer.from("other-17"), kazoo);
  const session = await tree.connect();
  const handles = {
    tree: session,
    clock: systemClock,
    random: systemRandom,
    log: memoryLog(),
    live: new Live(systemClock),
  };
  let reported = 0;
  const place = { parent: STATS, data: Buffer.from("host-4711") };
  const election = new Election(handles, place, () => void reported++);
  election.start();
  const ours = await until("it stands", async () => {
    const names = await tree.children(STATS);
    return names.find((name) => !foreign.path.endsWith(name));
  });
  expect(Buffer.from((await tree.get(`${STATS}/${ours}`)).data).toString()).toBe("host-4711");
  expect(election.leading).toBe(false);
  await tree.delete(foreign.path);
  await until("it leads", () => election.leading);
  expect(reported).toBe(1);
  await election.close();
  expect(await tree.children(STATS)).toEqual([]);
});
