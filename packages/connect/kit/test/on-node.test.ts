import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import type { NodeAccess } from "@nodeyard/client";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireSshd, type Sshd, startSshd } from "../../../../testing/sshd/index.ts";
import { type NodeShell, nodeShell, OnNodeError, openSsh } from "../src/index.ts";

describe.skipIf(requireSshd())("programs on a node with a real SSH server", () => {
  const never = new AbortController().signal;
  let folder: string;
  let sshd: Sshd;
  let shell: NodeShell;
  let node: NodeAccess;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-on-node-"));
    const key = join(folder, "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    sshd = await startSshd({ authorizedKey: readFileSync(`${key}.pub`, "utf8").trim() });
    shell = nodeShell(openSsh(key), { clock: systemClock, random: systemRandom, log: memoryLog() });
    node = {
      ...{ id: "0000000001", label: ["small"], provider: "lab", username: userInfo().username },
      ...{ interface_ip: sshd.host, connection_port: sshd.port, connection_type: "ssh" },
      host_keys: sshd.hostKeys as string[],
    };
  });
  afterAll(async () => {
    await sshd?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const home = () => join(sshd.folder, ".nodeyard");
  const program =
    (script: string, env = {}) =>
    async () => ({ script, env });

  test("a program runs once for its name, with the mask of its user and its secrets in its environment alone", async () => {
    const out = join(folder, "out");
    const mask = execFileSync("sh", ["-c", "umask"], { encoding: "utf8" });
    const first = program(`umask >>${out}; echo "$SECRET" >>${out}; ls >>${out}; exit 3`, { SECRET: "it's" });
    const second = program(`echo twice >>${out}`);
    expect((await shell.run(node, "once-1", first, never)).code).toBe(3);
    expect((await shell.run(node, "once-1", second, never)).code).toBe(3);
    expect(readFileSync(out, "utf8")).toBe(`${mask}it's\nboot\nlock\nlog\npid\n`);
    await shell.stop(node, "once-1", never);
    expect(existsSync(join(home(), "once-1"))).toBe(false);
  });

  test("what a program leaves behind does not keep its end, and ends with the node's return", async () => {
    const pid = join(folder, "pid");
    const started = await shell.run(node, "left-1", program(`sleep 600 & echo $! >${pid}`), never);
    expect(started.code).toBe(0);
    // Of a process that has ended, and that nobody has waited for, it is empty.
    const alive = () => {
      const file = `/proc/${readFileSync(pid, "utf8").trim()}/cmdline`;
      return existsSync(file) && readFileSync(file, "utf8") !== "";
    };
    expect(alive()).toBe(true);
    await shell.stop(node, "left-1", never);
    await expect.poll(alive).toBe(false);
  });

  test("what cannot be prepared starts nothing, and the next try may; a name is no place for a command", async () => {
    const broken = async () => {
      throw new Error("the CI is away");
    };
    await expect(shell.run(node, "later-1", broken, never)).rejects.toThrow("the CI is away");
    expect((await shell.run(node, "later-1", program("exit 0"), never)).code).toBe(0);
    for (const name of ["x; touch here", "$(id)"])
      await expect(shell.run(node, name, program("exit 0"), never)).rejects.toThrow(OnNodeError);
  });
});
