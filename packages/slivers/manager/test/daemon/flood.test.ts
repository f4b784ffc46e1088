import { existsSync } from "node:fs";
import { connect } from "node:net";
import { signText } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { spec } from "../api/rig.ts";
import { DaemonRig } from "./rig.ts";

const rig = new DaemonRig();
const NAMES = Array.from({ length: 10 }, (_, at) => `flood_${at}`);
const signal = () => AbortSignal.timeout(patient(60_000));
beforeAll(async () => {
  await rig.prepare();
  await rig.start();
  const slivers = NAMES.map((name) => spec(name));
  const head = { v: 1 as const, node: "node-1", epoch: 1, version: 1, issuedAt: 0 };
  await rig.launcher.deliver(signText("document", { ...head, slivers }, rig.signer), signal());
});
afterAll(() => rig.stop());

/** Sends until the connection ends. */
function send(name: string, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(rig.socket(name));
    socket.on("error", () => undefined).on("close", () => resolve());
    socket.on("data", () => undefined).write(bytes);
  });
}

test("ten slivers that flood their sockets: the launcher is answered, nothing ends, and the daemon has less than 200 MiB", async () => {
  const calls = Array.from({ length: 40 }, (_, at) => {
    const body = Buffer.from(
      `{"method":"SetLoans","params":["x",[${"[],".repeat(at % 4 === 0 ? 40_000 : 1)}1]]}`,
    );
    return Buffer.concat([
      Buffer.from(`POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`),
      body,
    ]);
  });
  await expect.poll(() => NAMES.every((name) => existsSync(rig.socket(name)))).toBe(true);
  // The first is the daemon, then the processes that parse for it.
  let highest = [0, 0];
  const look = () => {
    const [daemon, ...readers] = rig.resident;
    highest = [Math.max(highest[0]!, daemon!), Math.max(highest[1]!, ...readers)];
  };
  for (let round = 0; round < 8; round++) {
    const flood = NAMES.flatMap((name) => Array.from({ length: 8 }, () => send(name, Buffer.concat(calls))));
    expect((await rig.launcher.status(signal())).slivers).toHaveLength(NAMES.length);
    look();
    await Promise.all(flood);
    look();
  }
  expect(rig.errors.filter((line) => line.includes("ended with"))).toEqual([]);
  expect(rig.dead).toBe(false);
  expect(highest[0]).toBeLessThan(200);
  expect(highest[1]).toBeLessThan(256);
});
