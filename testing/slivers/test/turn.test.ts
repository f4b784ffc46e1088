import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { turn } from "../turn.ts";

const TURN = fileURLToPath(new URL("../turn.ts", import.meta.url));

test("one process at a time has the machine; one that waits too long gets the holder's name, and a killed holder loses it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-turn-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "lock");
  const script = `const { turn } = await import(${JSON.stringify(TURN)}); await turn(${JSON.stringify(file)}); console.log("has it"); setInterval(() => {}, 1000);`;
  const other = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  onTestFinished(() => void other.kill("SIGKILL"));
  await once(other.stdout, "data");

  await expect(turn(file, 100)).rejects.toThrow(
    new RegExp(`^process ${other.pid} \\(.*\\) makes slivers on this machine; end it$`, "s"),
  );

  const waiting = turn(file);
  other.kill("SIGKILL");
  (await waiting)();
  (await turn(file, 0))();
});
