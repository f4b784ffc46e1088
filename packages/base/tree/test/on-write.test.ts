import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { UnixConnector } from "@nodeyard/zookeeper";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  connectZooKeeperTree,
  type EmbeddedTree,
  openEmbeddedTree,
  startTreeServer,
  type Tree,
  type WriteEnded,
} from "../src/index.ts";

let folder: string;
let writes: WriteEnded[];
let embedded: EmbeddedTree;
const handles = { clock: systemClock, random: systemRandom };
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-write-"));
  writes = [];
  embedded = await openEmbeddedTree({ ...handles, folder, onWrite: (write) => writes.push(write) });
});
afterEach(async () => {
  await embedded.close();
  rmSync(folder, { recursive: true, force: true });
});

async function write(tree: Tree): Promise<void> {
  const data = Buffer.from("x");
  await tree.create("/a", data);
  await tree.get("/a");
  await expect(tree.set("/a", data, { version: 9 })).rejects.toThrow();
  await tree.commit([
    { op: "create", path: "/b", data },
    { op: "delete", path: "/a" },
  ]);
}

const WRITTEN = [
  ["create", "/a", 1, undefined],
  ["set", "/a", 1, "tree.bad_version"],
  ["commit", "/b", 2, undefined],
];
const reported = () =>
  writes.map(({ what, path, operations, error }) => [what, path, operations, error?.code]);

test("each write that ended is reported once, with its refusal: every session of an embedded tree", async () => {
  const session = await embedded.connect();
  writes.length = 0;
  await write(session);
  expect(reported()).toEqual(WRITTEN);
  await session.close();
});

test("each write that ended is reported once, with its refusal: over ZooKeeper's protocol", async () => {
  const socket = join(folder, "tree.sock");
  const server = await startTreeServer({ core: embedded.core, clock: systemClock, socket });
  const onWrite = (write: WriteEnded) => writes.push(write);
  const connector = new UnixConnector(socket);
  const tree = await connectZooKeeperTree({ ...handles, servers: "localhost:2181", connector, onWrite });
  writes.length = 0;
  await write(tree);
  expect(reported()).toEqual(WRITTEN);
  await tree.close();
  await server.close();
});
