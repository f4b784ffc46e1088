import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { difference, hostState, Machine, whyNot } from "../../../../testing/slivers/index.ts";
import { Site } from "../cli/nodeyard.ts";

interface Granted {
  readonly lease: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly interface_ip: string;
    readonly username: string;
  }[];
}

describe.skipIf(whyNot() !== undefined)("a job in a sliver of this machine", { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-slivers-"));
  const machine = new Machine("here", "account", {
    folder,
    network: "10.216",
    pool: { bytes: 1_000_000_000 },
  });
  const site = new Site("");
  const keyFile = join(folder, "id");
  let before: ReturnType<typeof hostState>;

  beforeAll(async () => {
    before = hostState(folder);
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", keyFile]);
    await machine.start();
    const key = execFileSync("cat", [`${keyFile}.pub`], { encoding: "utf8" }).trim();
    const provider = {
      name: "lab",
      driver: "sliver",
      "signing-keys": machine.keysFile,
      "authorized-keys": [key],
      machines: [{ name: machine.name, socket: machine.socket }],
      pools: [{ name: "main", labels: [{ name: "small", memory: 96, "cpu-cap": 1000, disk: 64 }] }],
    };
    writeFileSync(site.config, JSON.stringify({ labels: [{ name: "small" }], providers: [provider] }));
    await site.up();
  }, 120_000);
  afterAll(async () => {
    await site.close();
    await machine.clear();
    await machine.dismantle();
    await machine.stop();
    rmSync(folder, { recursive: true, force: true });
    expect(difference(before, hostState(folder))).toEqual([]);
  }, 120_000);

  const ssh = ({ interface_ip, username }: Granted["nodes"][number], script: string): string => {
    const options = [
      "StrictHostKeyChecking=no",
      "UserKnownHostsFile=/dev/null",
      "LogLevel=ERROR",
      "BatchMode=yes",
    ];
    const words = options.flatMap((option) => ["-o", option]);
    return execFileSync("ssh", ["-i", keyFile, ...words, `${username}@${interface_ip}`, script], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  };

  test("that is killed for its memory is told so by explain, now and when its node is gone", async () => {
    const { lease, nodes } = await site.json<Granted>("request", "small", "--wait");
    const [node] = nodes as [Granted["nodes"][number]];
    expect(() => ssh(node, "tail /dev/zero")).toThrow();
    const told = /its memory \(96 MiB\) was full: the kernel killed \d+ process/;
    await machine.until(({ slivers }) => (slivers[0]?.memoryKills ?? 0) > 0);
    expect((await site.run("explain", node.id)).out).toMatch(told);
    expect((await site.run("release", lease)).code).toBe(0);
    await expect.poll(() => site.json("list"), { timeout: 60_000 }).toEqual([]);
    expect((await site.run("explain", node.id)).out).toMatch(told);
  });
});
