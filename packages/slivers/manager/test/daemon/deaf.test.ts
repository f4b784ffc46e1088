import { afterAll, beforeAll, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { DaemonRig } from "./rig.ts";

const rig = new DaemonRig();
const LINES = 20;

beforeAll(async () => {
  await rig.prepare();
  await rig.start();
});
afterAll(() => rig.stop());

test("continues when the reader of its log is gone: it answers, and stops when asked", async () => {
  await rig.deafen();
  for (let line = 0; line < LINES; line++) {
    rig.signal("SIGUSR2");
    expect((await rig.launcher.status(AbortSignal.timeout(patient(60_000)))).node).toBe("node-1");
  }
  expect(await rig.end("SIGTERM")).toBe(0);
});

test("without a word about TCP it listens on no port, for nobody", async () => {
  await rig.configure({ tcp: undefined });
  await rig.start();
  const own = rig.listens;
  await rig.end("SIGTERM");
  await rig.configure();
  await rig.start();
  expect([own, rig.listens]).toEqual([[], [rig.port]]);
});
