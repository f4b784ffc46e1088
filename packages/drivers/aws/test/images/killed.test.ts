import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../../testing/aws/index.ts";
import { adopt } from "../../../../../testing/zookeeper/children.ts";
import { BLOCK, checksumOf, dataOf, ImageRig, stored } from "./rig.ts";

const PROCESS = fileURLToPath(new URL("upload-process.ts", import.meta.url));
const SIZE = 1024 ** 3;
/** A tenth of the file, spread over it. */
const DATA = Array.from({ length: Math.floor(SIZE / BLOCK / 10) }, (_, number) => number * 10 + (number % 7));
/** Blocks between two checkpoints, and blocks sent past the first that has not arrived: what a crash may cost. */
const STRETCH = 64;
const AHEAD = 64;

describe.skipIf(requireAws())("an upload by EBS direct that is killed", () => {
  let rig: ImageRig;
  beforeAll(async () => {
    rig = await ImageRig.start();
  });
  afterAll(() => rig?.stop());

  test("1 GiB with a tenth of data: only that is sent, in parallel, and kill -9 costs no more than a stretch", async () => {
    const file = rig.file("large", SIZE, DATA);
    const checkpoint = join(rig.folder, "checkpoint");
    const begin = (...hold: string[]) => {
      const args = [rig.server.url, JSON.stringify(rig.site), file, String(SIZE), checkpoint, ...hold];
      const child = spawn(process.execPath, [PROCESS, ...args], { stdio: ["ignore", "pipe", "inherit"] });
      adopt(child);
      return child;
    };
    const first = begin("hold");
    expect(await said(first)).toBe("stored");
    first.kill("SIGKILL");
    await once(first, "exit");
    const { id: snapshot, pieces: kept } = stored(checkpoint) as { id: string; pieces: number };
    const before = await rig.server.blocks(snapshot);
    expect(before.status).toBe("pending");
    expect(kept).toBeGreaterThanOrEqual(STRETCH);
    // Others were under way while the checkpoint was stored, or had overtaken one that was.
    expect(before.puts).toBeGreaterThanOrEqual(kept);
    expect(before.puts).toBeLessThan(kept + AHEAD);
    for (const block of DATA.slice(0, kept)) expect(before.blocks[block]).toBe(checksumOf(dataOf(block)));

    expect(await said(begin())).toMatch(/^ready "ami-/);
    const { blocks, status, puts } = await rig.server.blocks(snapshot);
    expect(status).toBe("completed");
    // All after the checkpoint, and what the killed process had handed to its sockets and the server read later.
    expect(puts - before.puts).toBeGreaterThanOrEqual(DATA.length - kept);
    expect(puts).toBeLessThan(DATA.length + AHEAD);
    expect(Object.keys(blocks).map(Number)).toEqual(DATA);
    for (const block of DATA) expect(blocks[block]).toBe(checksumOf(dataOf(block)));
    expect(await rig.server.counts()).toMatchObject({ "ebs.StartSnapshot": 1, "ec2.RegisterImage": 1 });
  });
});

/** The first line of a process, which fails the test when it ends without one. */
async function said(child: ChildProcess): Promise<string> {
  let text = "";
  for await (const part of child.stdout!) {
    text += part;
    if (text.includes("\n")) break;
  }
  return text.trim();
}
