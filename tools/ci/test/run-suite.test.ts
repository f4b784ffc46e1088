import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { runSuite } from "../run-suite.ts";

function run(script: string, limitMs = 60_000) {
  const logs = mkdtempSync(join(tmpdir(), "nodeyard-run-suite-"));
  onTestFinished(() => rmSync(logs, { recursive: true, force: true }));
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());
  const command = ["bash", "-c", script];
  const suite = { name: "some", command, covers: [], takes: { seconds: 1, processors: 1, limit: 1 } };
  return runSuite(suite, { logs, env: { ...process.env, WORD: "hello" }, limitMs });
}

test("what a suite prints is in its log and behind its name, and its exit code is its verdict", async () => {
  const ended = await run("echo out; echo err >&2; exit 3");
  expect(ended.passed).toBe(false);
  expect(readFileSync(ended.log, "utf8").split("\n").sort()).toEqual(["", "err", "out"]);
  expect(vi.mocked(console.log).mock.calls.flat().sort()).toEqual(["some | err", "some | out"]);
});

test("words of a command may name what the run prepared", async () => {
  const ended = await run("echo $WORD");
  expect(ended.passed).toBe(true);
  expect(readFileSync(ended.log, "utf8")).toBe("hello\n");
});

test("the processor time is that of everything it started", async () => {
  const busy = `${process.execPath} -e 'const end = process.cpuUsage().user + 4e5; while (process.cpuUsage().user < end);'`;
  expect((await run(busy)).processorSeconds).toBeGreaterThan(0.3);
});

test("a suite that hangs is ended with all that it started", async () => {
  const ended = await run("sleep 1000 & echo $!; wait", 300);
  expect(ended).toMatchObject({ passed: false, timedOut: true });
  const pid = Number(readFileSync(ended.log, "utf8"));
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), 10_000);
});
