import { spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nodeyard-run-"));
  mkdirSync(join(root, "tools"));
  copyFileSync(fileURLToPath(new URL("../run.mjs", import.meta.url)), join(root, "tools/run.mjs"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
});

/** Makes the Node that starts run.mjs claim another version. */
const OLD = [
  "--import",
  'data:text/javascript,for (const [key, value] of [["versions", {node: "20.1.0"}], ["version", "v20.1.0"]]) Object.defineProperty(process, key, {value})',
];

function run(args: readonly string[], nodeOptions: readonly string[] = []) {
  return spawnSync(process.execPath, [...nodeOptions, "tools/run.mjs", ...args], {
    cwd: root,
    encoding: "utf8",
  });
}

/** Puts a program in the place of the dev dependency `node`. */
function installNode(script: string, mode = 0o755): void {
  const bin = join(root, "node_modules/node/bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "node"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, "node"), mode);
}

describe("tools/run.mjs", () => {
  it("says in one line what to do when there is no Node 24", () => {
    const { status, stdout, stderr } = run(["main.ts"], OLD);
    expect(status).toBe(1);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n")).toEqual([
      "nodeyard: needs Node 24, this is v20.1.0, and node_modules/node/bin/node is missing " +
        "(its install script did not run). Run: npm rebuild node --ignore-scripts=false",
    ]);
  });

  it("says in one line when the installed binary does not start", () => {
    installNode("", 0o644);
    const { status, stderr } = run(["main.ts"], OLD);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^nodeyard: cannot start .*EACCES.* Run: npm rebuild node .*\n$/);
  });

  it("passes the arguments to the installed binary and returns its exit code", () => {
    installNode('echo "$@"; exit 7');
    const { status, stdout } = run(["main.ts", "--once", "a b"], OLD);
    expect(stdout).toBe("--disable-warning=ExperimentalWarning main.ts --once a b\n");
    expect(status).toBe(7);
  });

  it("uses the Node that runs it if its version is right", () => {
    writeFileSync(join(root, "main.ts"), "const text: string = process.argv[2]!;\nconsole.log(text);\n");
    expect(run(["main.ts", "hello"])).toMatchObject({ status: 0, stdout: "hello\n" });
  });

  it("passes signals on and ends as its child ended", async () => {
    installNode("echo ready; exec sleep 30");
    const child = spawn(process.execPath, ["tools/run.mjs", "main.ts"], { cwd: root });
    const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: null, signal: "SIGTERM" });
  });
});
