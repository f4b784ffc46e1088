import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { FakeCloud, FileJournal, readJournal } from "../src/index.ts";

const WORKER = fileURLToPath(new URL("journal-worker.ts", import.meta.url));
const MACHINES = 300;

test("processes that make the same machines at once, one of them killed, agree on one per tag", async () => {
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-journal-"));
  const path = join(folder, "cloud.jsonl");
  try {
    const workers = [0, 1, 2].map(() => start(path));
    workers[0]!.child.stdout!.once("data", () => workers[0]!.child.kill("SIGKILL"));
    await Promise.all(workers.map(({ ended }) => ended));
    const journal = new FileJournal(path);
    const cloud = new FakeCloud({ clock: new VirtualClock(), random: seededRandom(1), journal });
    const servers = cloud.inspect();
    journal.close();
    const live = new Map(servers.map((server) => [server.tag!.nodeId, server.id]));
    expect([servers.length, live.size]).toEqual([MACHINES, MACHINES]);
    for (const { output } of workers) {
      // The last line of the killed one may be cut off.
      for (const line of output().split("\n").slice(0, -1)) {
        const [node, id] = line.split(" ") as [string, string];
        expect(id).toBe(live.get(node));
      }
    }
    expect(readJournal(await readFile(path, "utf8")).length).toBeGreaterThanOrEqual(MACHINES);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

function start(path: string) {
  const child: ChildProcess = spawn(process.execPath, [WORKER, path, String(MACHINES)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return { child, output: () => text, ended: new Promise((resolve) => child.once("close", resolve)) };
}
