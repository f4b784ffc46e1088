import { execFile } from "node:child_process";
import { connect as netConnect } from "node:net";
import { promisify } from "node:util";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireSshd, type Sshd, startSshd } from "../../../../testing/sshd/index.ts";
import { createScanner, type ScanTarget } from "../src/index.ts";
import { serve } from "./servers.ts";

const ALL = ["ed25519", "ecdsa-256", "ecdsa-384", "ecdsa-521", "rsa"] as const;
const clock = systemClock;

function target(port: number, more: Partial<ScanTarget> = {}): ScanTarget {
  return { host: "127.0.0.1", port, keys: true, timeoutMs: 10_000, ...more };
}

describe.skipIf(requireSshd())("against a real sshd with every key type", () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd({ hostKeyTypes: ALL });
  });
  afterAll(() => sshd.stop());

  test("shows every host key once, as OpenSSH's own scanner does, with one connection per key", async () => {
    const counting = await serve((socket) => {
      const upstream = netConnect(sshd.port, "127.0.0.1");
      upstream.on("error", () => socket.destroy());
      socket.on("close", () => upstream.destroy());
      socket.pipe(upstream).pipe(socket);
    });
    const result = await createScanner({ clock }).scan(target(counting.port));
    expect(result).toEqual({ address: "127.0.0.1", family: 4, hostKeys: sshd.hostKeys });
    expect(counting.connections()).toBe(ALL.length);
    await counting.stop();
    const { stdout } = await promisify(execFile)("ssh-keyscan", [
      ...["-t", "ed25519,ecdsa,rsa", "-p", String(sshd.port)],
      "127.0.0.1",
    ]);
    const theirs = stdout
      .trim()
      .split("\n")
      .filter((line) => !line.startsWith("#"));
    for (const line of theirs) expect(result.hostKeys).toContain(line.split(" ").slice(1).join(" "));
    expect(theirs.length).toBeGreaterThan(0);
  });

  test.each([
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group14-sha1",
    "diffie-hellman-group1-sha1",
  ])("reads the keys of a server that only knows %s", async (method) => {
    const strict = await startSshd({ config: [`KexAlgorithms ${method}`] });
    try {
      const { hostKeys } = await createScanner({ clock }).scan(target(strict.port));
      expect(hostKeys).toEqual(strict.hostKeys);
    } finally {
      await strict.stop();
    }
  });

  test.each(["ssh-rsa", "rsa-sha2-256"])("reads an RSA key that only signs with %s", async (algorithm) => {
    const old = await startSshd({ hostKeyTypes: ["rsa"], config: [`HostKeyAlgorithms ${algorithm}`] });
    try {
      expect((await createScanner({ clock }).scan(target(old.port))).hostKeys).toEqual(old.hostKeys);
    } finally {
      await old.stop();
    }
  });

  test("50 scans at once all succeed, with more of them than may be active", async () => {
    const scanner = createScanner({ clock, active: 20 });
    const results = await Promise.all(Array.from({ length: 50 }, () => scanner.scan(target(sshd.port))));
    for (const { hostKeys } of results) expect(hostKeys).toEqual(sshd.hostKeys);
  });

  test("finds the keys of a server that starts to listen after the scan has begun", async () => {
    const port = await serve(() => {}).then(async (server) => {
      await server.stop();
      return server.port;
    });
    const scan = createScanner({ clock }).scan(target(port));
    const late = await startSshd({ port });
    try {
      expect((await scan).hostKeys).toEqual(late.hostKeys);
    } finally {
      await late.stop();
    }
  });

  test("a server that drops some connections before it greets still shows all its keys", async () => {
    let turn = 0;
    const flaky = await serve((socket) => {
      if (turn++ % 2 === 1) {
        socket.destroy();
        return;
      }
      const upstream = netConnect(sshd.port, "127.0.0.1");
      upstream.on("error", () => socket.destroy());
      socket.on("close", () => upstream.destroy());
      socket.pipe(upstream).pipe(socket);
    });
    try {
      const { hostKeys } = await createScanner({ clock }).scan(target(flaky.port));
      expect(hostKeys).toEqual(sshd.hostKeys);
    } finally {
      await flaky.stop();
    }
  });
});
