import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSigningKeys } from "@nodeyard/sliver-protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Running } from "../../../cli/test/nodeyard.ts";

const MEMORY = join(import.meta.dirname, "../../../../../testing/slivers/memory-sliverd.ts");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-sliverd-run-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("`nodeyard sliverd run` is the sliver manager: it runs on this terminal, and ends with its signal and exit code", async () => {
  const file = join(folder, "sliverd.json");
  const settings = {
    node: "here",
    backEnd: "memory",
    stateFolder: join(folder, "state"),
    runFolder: join(folder, "run"),
    keySet: createSigningKeys(join(folder, "keys.json")).keySet,
    machine: { cpu: 1000 },
    control: { uid: process.getuid!() },
  };
  writeFileSync(file, JSON.stringify(settings));
  const run = new Running(["sliverd", "run", file], { NODE_OPTIONS: `--import=${MEMORY}` });
  await run.printed("info sliverd ");
  run.child.kill("SIGTERM");
  expect(await run.ended).toMatchObject({ code: 0, signal: null });
});

test("what it refuses is said once, with its exit code", async () => {
  const { code, err } = await new Running(["sliverd", "run", join(folder, "none.json")]).ended;
  expect(code).toBe(1);
  expect(err.trim().split("\n")).toEqual([
    `error ${join(folder, "none.json")} cannot be read (ENOENT): name the file with this machine's configuration`,
  ]);
  const usage = await new Running(["sliverd", "run", "--dry-run"]).ended;
  expect(usage).toMatchObject({
    code: 2,
    err: expect.stringContaining("--dry-run has no effect without --dismantle"),
  });
});
