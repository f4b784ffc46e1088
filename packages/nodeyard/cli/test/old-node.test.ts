import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = new URL("../", import.meta.url);
const { bin, engines } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
const PROGRAM = fileURLToPath(new URL(bin.nodeyard, ROOT));
const needed = Number(/\d+/.exec(engines.node)![0]);

/** The installed program as Node `version` would run it, as far as that Node tells its version. */
function runAs(version: string) {
  const pretend = `
    Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} });
    Object.defineProperty(process, "version", { value: ${JSON.stringify(`v${version}`)} });
    process.argv.push("nodeyard", "--version");
    require(${JSON.stringify(PROGRAM)});`;
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  return spawnSync(process.execPath, ["-e", pretend], { encoding: "utf8", env });
}

describe("the installed program", () => {
  it("says in one line which Node it needs, and loads nothing that the old one may not understand", () => {
    for (const version of [`${needed - 1}.11.1`, "8.17.0"]) {
      const { status, stdout, stderr } = runAs(version);
      expect({ status, stdout, stderr }).toEqual({
        status: 1,
        stdout: "",
        stderr: `nodeyard: needs Node ${needed} or newer, and ${process.execPath} is v${version}; install Node ${needed} and put it first in PATH\n`,
      });
    }
  });

  it("starts with the Node that it needs and with newer ones", () => {
    for (const version of [`${needed}.0.0`, `${needed + 76}.0.0`])
      expect(runAs(version).stdout).toMatch(/^Nodeyard version: /);
  });
});
