import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireSshd, type Sshd, startSshd } from "../../../../testing/sshd/index.ts";
import { Running, Site } from "./nodeyard.ts";

describe.skipIf(requireSshd())("run and shell, on a real SSH server", () => {
  let site: Site;
  let sshd: Sshd;
  beforeAll(async () => {
    site = new Site("");
    const key = join(site.folder, "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    sshd = await startSshd({ authorizedKey: readFileSync(`${key}.pub`, "utf8").trim() });
    site.write(`
labels: [{name: host, min-ready: 0}]
providers:
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
          - name: ${sshd.host}
            labels: host
            username: ${userInfo().username}
            connection-port: ${sshd.port}
            host-key: ${sshd.hostKeys[0]}
`);
    await site.up();
  });
  afterAll(async () => {
    await site.close();
    await sshd?.stop();
  });

  const run = (...words: readonly string[]) =>
    site.run("run", "host", "--identity", join(site.folder, "key"), "--", ...words);
  const isFree = () => expect.poll(() => site.json("list", "--leases")).toEqual([]);

  test("words arrive as they are given, and output and exit code come back; the node is given back", async () => {
    const { code, out, err } = await run("sh", "-c", 'echo "[$1] [$2]"; exit 7', "sh", "a  b", "$HOME;'");
    expect([code, out]).toEqual([7, "[a  b] [$HOME;']\n"]);
    expect(err).toMatch(/\nreleased [0-9a-f]{12}\n$/);
    await isFree();
  });

  test("a signal ends the command, and the node is given back", async () => {
    const running = site.start(
      "run",
      "host",
      "--identity",
      join(site.folder, "key"),
      "--",
      "sh",
      "-c",
      "echo here; sleep 600",
    );
    await expect.poll(() => running.out).toBe("here\n");
    const { code, err } = await running.kill("SIGTERM");
    expect(code).not.toBe(0);
    expect(err).toMatch(/\nreleased [0-9a-f]{12}\n$/);
    await isFree();
  });

  test("ssh waits for a node that is gone for a limited time, and knows no other host keys than the node's", async () => {
    const shim = join(site.folder, "ssh");
    writeFileSync(shim, '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
    const words = ["--state", site.state, "run", "host", "--", "true"];
    const { code, out } = await new Running(words, { PATH: `${site.folder}:${process.env.PATH}` }).ended;
    expect(code).toBe(0);
    for (const option of ["ConnectTimeout=30", "ServerAliveInterval=30", "StrictHostKeyChecking=yes"])
      expect(out).toContain(`-o ${option} `);
    await isFree();
  });

  test("without a node the code is 125, and 124 for --timeout", async () => {
    const none = await site.run("run", "nothing-like-it", "--", "true");
    expect([none.code, none.out]).toEqual([125, ""]);
    const { lease } = await site.json<{ lease: string }>("request", "host", "--wait");
    const late = await site.run("shell", "host", "--timeout", "1s");
    expect([late.code, late.out]).toEqual([124, ""]);
    await site.run("release", lease);
  });
});
