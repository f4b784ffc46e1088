import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom, systemClock, systemRandom } from "@nodeyard/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openEmbeddedTree } from "../../src/embedded/index.ts";
import { attachEmbeddedTree } from "../../src/server/index.ts";

const WRITER = new URL("./writer.ts", import.meta.url).pathname;
const KILLS = 10;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-crash-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function linesOf(child: ChildProcess): { readonly all: () => string[]; some(count: number): Promise<void> } {
  let text = "";
  let wanted: { count: number; resolve: () => void } | undefined;
  const all = () => text.split("\n").slice(0, -1);
  const look = () => {
    if (wanted !== undefined && all().length >= wanted.count) wanted.resolve();
  };
  child.stdout?.setEncoding("utf8").on("data", (more: string) => {
    text += more;
    look();
  });
  return {
    all,
    some: (count) =>
      new Promise((resolve, reject) => {
        wanted = { count, resolve };
        child.once("exit", () => reject(new Error("the writer ended early")));
        look();
      }),
  };
}

test("after kill -9 every acknowledged commit is there, none is there by half, zxids never go back", async () => {
  const random = seededRandom(7);
  const acknowledged = new Set<number>();
  let first = 0;
  let seen = 0n;
  for (let kill = 0; kill < KILLS; kill++) {
    const child = spawn(process.execPath, [WRITER, folder, String(first), "100"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    const lines = linesOf(child);
    await lines.some(3 + Math.floor(random.float() * 120));
    child.kill("SIGKILL");
    await exited;
    const [opened, , ...commits] = lines.all();
    // The first zxid of a process is above all that earlier ones told.
    const zxid = BigInt(opened!.split(" ")[1]!);
    expect(zxid).toBeGreaterThan(seen);
    for (const line of commits) {
      const [n, reported] = line.split(" ");
      acknowledged.add(Number(n));
      first = Math.max(first, Number(n) + 100);
      if (BigInt(reported!) > seen) seen = BigInt(reported!);
    }
  }
  const tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  const names = new Set(await tree.children("/pairs"));
  const missing = [...acknowledged].filter((n) => !names.has(`${n}-a`) || !names.has(`${n}-b`));
  expect(missing).toEqual([]);
  const halves = [...names].filter(
    (name) => !names.has(name.endsWith("a") ? `${name.slice(0, -1)}b` : `${name.slice(0, -1)}a`),
  );
  expect(halves).toEqual([]);
  expect(acknowledged.size).toBeGreaterThan(KILLS);
  // The ephemeral of a killed process went at the next opening; the next one could make it again.
  expect(await tree.stat("/mine")).toBeUndefined();
  await tree.close();
});

test("kill -9 of the server costs its clients neither session nor ephemerals, and no other server takes the folder meanwhile", async () => {
  const start = async (first: number) => {
    const child = spawn(process.execPath, [WRITER, folder, String(first), "100", "serve"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await linesOf(child).some(3);
    return { child, exited: once(child, "exit") };
  };
  const options = { folder, clock: systemClock, random: systemRandom };
  const one = await start(0);
  await expect(openEmbeddedTree(options)).rejects.toMatchObject({
    code: "tree.store_in_use",
    message: expect.stringContaining(`in use by process ${one.child.pid};`),
  });
  const client = await attachEmbeddedTree(options);
  const { stat } = await client.create("/client", undefined, { ephemeral: true });
  const { epoch } = client.session();
  one.child.kill("SIGKILL");
  await one.exited;
  // Its socket is still there, and must not stop the next.
  const two = await start(1_000_000);
  expect(await client.stat("/client")).toEqual(stat);
  expect(client.session().epoch).toBe(epoch);
  await client.close();
  two.child.kill("SIGKILL");
  await two.exited;
});

test("a full disk stops the tree: refused, never acknowledged, and whole at the next opening", async () => {
  // The limit on file sizes is the kernel's; ignoring its signal turns it into a failed write, as a full disk gives.
  const child = spawn(
    "bash",
    ["-c", 'trap "" XFSZ; ulimit -f 2000; exec "$0" "$@"', process.execPath, WRITER, folder, "0", "20000"],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const lines = linesOf(child);
  await once(child, "close");
  const said = lines.all();
  expect(said.slice(-2)).toEqual(["failed tree.store_failed unknown", "later tree.store_failed closed"]);
  const acknowledged = said.slice(2, -2).map((line) => line.split(" ")[0]!);
  expect(acknowledged.length).toBeGreaterThan(0);
  const tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  const names = new Set(await tree.children("/pairs"));
  expect(acknowledged.filter((n) => !names.has(`${n}-a`) || !names.has(`${n}-b`))).toEqual([]);
  await tree.close();
});
