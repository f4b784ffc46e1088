import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { requireSshd } from "../../../../testing/sshd/index.ts";

const DEMO = fileURLToPath(new URL("../../../../examples/demo/main.ts", import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-demo-test-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** `npm start -- --once`, its temporary files in a folder of ours. */
function demo(
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", DEMO, "--once", "--no-slivers"],
    {
      cwd: folder,
      env: { ...process.env, TMPDIR: folder, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const text = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text.out += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    text.err += chunk;
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, ...text })));
}

test.skipIf(requireSshd())("hands out fake nodes and a real SSH host, and leaves nothing", async () => {
  const { code, out, err } = await demo();
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/hello from \S+, port \d+\n/);
  expect(out).toContain("all 3 nodes are returned");
  expect(readdirSync(folder)).toEqual([]);
});

test("without ssh it says so and shows the rest", async () => {
  const { code, out, err } = await demo({ PATH: "/nonexistent" });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/No static hosts in this demo, because \S+ is not installed/);
  expect(out).toContain("all 2 nodes are returned");
});
