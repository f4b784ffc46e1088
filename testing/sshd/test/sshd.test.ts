import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { requireSshd, startSshd } from "../index.ts";

const run = promisify(execFile);

describe.skipIf(requireSshd())("startSshd", () => {
  test("lets the given key in, shows its own host key, and leaves nothing behind", async () => {
    const folder = await mkdtemp(join(tmpdir(), "nodeyard-sshd-test-"));
    const identity = join(folder, "id");
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", identity]);
    const sshd = await startSshd({ authorizedKey: (await readFile(`${identity}.pub`, "utf8")).trim() });
    try {
      const known = join(folder, "known_hosts");
      await writeFile(known, `[${sshd.host}]:${sshd.port} ${sshd.hostKeys[0]}\n`);
      const options = ["BatchMode=yes", "StrictHostKeyChecking=yes", `UserKnownHostsFile=${known}`];
      const { stdout } = await run("ssh", [
        ...["-F", "none", "-i", identity, "-p", String(sshd.port)],
        ...options.flatMap((option) => ["-o", option]),
        `${userInfo().username}@${sshd.host}`,
        "echo $((6*7))",
      ]);
      expect(stdout).toBe("42\n");
    } finally {
      await sshd.stop();
      await sshd.stop();
      await rm(folder, { recursive: true, force: true });
    }
    expect(existsSync(dirname(sshd.folder))).toBe(true);
    expect(existsSync(sshd.folder)).toBe(false);
  });

  test("a server that cannot start says why", async () => {
    await expect(startSshd({ config: ["NoSuchKeyword yes"] })).rejects.toThrow(/NoSuchKeyword/);
  });
});
