import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runHook } from "../src/edge/hook.ts";
import { type Host, makeHost, until } from "./rig.ts";

let host: Host;

beforeEach(() => {
  host = makeHost();
});
afterEach(() => host.remove());

const never = new AbortController().signal;

/** Whether the process whose id a script left in this file is there. */
function isAlive(file: string): boolean {
  return readdirSync("/proc").includes(readFileSync(join(host.folder, file), "utf8").trim());
}

test("much output is no failure; its end is kept", async () => {
  const hook = host.script("hook", "head -c 300000 /dev/zero | tr '\\0' x\necho; echo the end $1");
  const { code, output } = await runHook(hook, ["of it"], never);
  expect(code).toBe(0);
  expect(output).toMatch(/x\nthe end of it$/);
  expect(output.length).toBeLessThanOrEqual(8 * 1024);
});

test("what it leaves behind, with its output open, is not waited for and goes on", async () => {
  const hook = host.script("hook", 'sleep 600 &\necho $! > "$(dirname "$0")/pid"\necho said');
  expect(await runHook(hook, [], never)).toEqual({ code: 0, output: "said" });
  expect(isAlive("pid")).toBe(true);
  process.kill(Number(readFileSync(join(host.folder, "pid"), "utf8")), "SIGKILL");
});

test("an abort ends it with what it started", async () => {
  const stop = new AbortController();
  const hook = host.script("hook", 'sleep 600 &\necho $! > "$(dirname "$0")/pid"\ntouch "$0.on"\nwait');
  const running = runHook(hook, [], stop.signal);
  await until(() => existsSync(`${hook}.on`), "the hook runs");
  stop.abort();
  expect((await running).code).not.toBe(0);
  await until(() => !isAlive("pid"), "its child ends");
});

test("one that cannot be run has exit code 127 and its name in the output", async () => {
  const { code, output } = await runHook(join(host.folder, "nothing"), [], never);
  expect(code).toBe(127);
  expect(output).toContain(join(host.folder, "nothing"));
});
