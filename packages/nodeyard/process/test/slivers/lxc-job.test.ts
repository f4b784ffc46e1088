import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { difference, hostState, Machine, whyNot } from "../../../../../testing/slivers/index.ts";
import { Site } from "../../../cli/test/nodeyard.ts";

interface Granted {
  readonly lease: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly interface_ip: string;
    readonly username: string;
  }[];
}

const SMALL = { name: "small", memory: 96, "cpu-cap": 1000, disk: 64 };
const CACHE = { name: "ccache", size: 16, key: ["project"], commit: "success" };

describe.skipIf(whyNot() !== undefined)("a job in a sliver of this machine", () => {
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
    await machine.start({ heartbeatSeconds: 1 });
    const key = execFileSync("cat", [`${keyFile}.pub`], { encoding: "utf8" }).trim();
    const provider = {
      name: "lab",
      driver: "sliver",
      "signing-keys": machine.keysFile,
      "authorized-keys": [key],
      machines: [{ name: machine.name, socket: machine.socket }],
      pools: [{ name: "main", labels: [SMALL, { ...SMALL, name: "build", caches: [CACHE] }] }],
    };
    writeFileSync(
      site.config,
      JSON.stringify({ labels: [{ name: "small" }, { name: "build" }], providers: [provider] }),
    );
    await site.up();
  });
  afterAll(async () => {
    await site.close();
    await machine.clear();
    await machine.dismantle();
    await machine.stop();
    rmSync(folder, { recursive: true, force: true });
    expect(difference(before, hostState(folder))).toEqual([]);
  });

  const ssh = (
    { interface_ip, username }: Granted["nodes"][number],
    script: string,
    seconds = 60,
  ): string => {
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
      timeout: seconds * 1000,
    }).trim();
  };

  const sh = (script: string) => execFileSync("sh", ["-c", script], { encoding: "utf8" }).trim();

  test("finds what the last job left that ended well, and of no other project", async () => {
    const job = async (project: string, script: string, ...release: string[]) => {
      const asked = ["request", "build", "--wait", "--project", project, "--branch", "main"];
      const { lease, nodes } = await site.json<Granted>(...asked);
      const said = ssh(nodes[0]!, script);
      const { out } = await site.run("explain", nodes[0]!.id);
      expect(await site.run("release", lease, ...release)).toMatchObject({ code: 0 });
      const ids = async () => (await site.json<readonly { id: string }[]>("list")).map(({ id }) => id);
      await expect.poll(ids, { timeout: patient(60_000) }).not.toContain(nodes[0]!.id);
      return { said, explained: out };
    };
    const first = await job("web", "echo one >/cache/ccache/file", "--commit");
    expect(first.explained).toMatch(
      /its cache ccache began empty: this machine has no cache ccache of .*web/,
    );
    const second = await job("web", "cat /cache/ccache/file; echo two >/cache/ccache/file");
    expect(second).toMatchObject({ said: "one", explained: expect.stringMatching(/began with 1 MiB/) });
    expect((await job("web", "cat /cache/ccache/file")).said).toBe("one");
    expect((await job("shop", "ls -A /cache/ccache")).said).toBe("");
    const caches = (...words: string[]) => site.run("caches", ...words, "--host", machine.socket);
    const [cache] = JSON.parse((await caches("list", "--json")).out) as [{ id: string }];
    expect(cache).toMatchObject({ name: "ccache", hits: 2, lost: 0, pinned: false });
    const short = cache.id.slice(0, 8);
    expect(await caches("pin", short)).toMatchObject({ code: 0 });
    expect((await caches("show", short)).out).toMatch(/^pinned +true$/m);
    expect(await caches("unpin", short)).toMatchObject({ code: 0 });
    expect(await caches("delete", short)).toMatchObject({ code: 0 });
    expect((await caches("show", short)).code).not.toBe(0);
  });

  test("sees the memory and the CPUs that are its own, and resolves names as the machine does", async () => {
    const { lease, nodes } = await site.json<Granted>("request", "small", "--wait");
    const [node] = nodes as [Granted["nodes"][number]];
    expect(ssh(node, "awk '/^MemTotal/ { print $2 }' /proc/meminfo")).toBe(String(96 * 1024));
    expect(ssh(node, "nproc")).toBe("1");
    if (!/ - cgroup /.test(readFileSync("/proc/self/mountinfo", "utf8"))) {
      expect(ssh(node, "cat /sys/fs/cgroup/memory.max")).toBe(String(96 * 1024 * 1024));
      expect(ssh(node, "cat /sys/fs/cgroup/cpu.max")).toBe("100000 100000");
      expect(ssh(node, "grep -c ^processor /proc/cpuinfo")).toBe("1");
    }
    const config = ["--config", join(machine.folder, "sliverd.json")];
    const exec = (...words: string[]) => site.run("sliverd", "exec", node.id, ...config, "--", ...words);
    expect(await exec("sh", "-c", "id -u; cat /proc/meminfo | head -1")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^0\nMemTotal: +98304 kB\n$/),
    });
    expect((await exec("sh", "-c", "exit 7")).code).toBe(7);
    // Frozen, it does not even answer; ended while it is frozen, it ends.
    expect((await site.run("sliverd", "freeze", node.id, ...config)).code).toBe(0);
    expect(() => ssh(node, "true", 3)).toThrow();
    expect((await site.run("sliverd", "thaw", node.id, ...config)).code).toBe(0);
    expect(ssh(node, "echo there")).toBe("there");
    // A name that this machine has to resolve, too: the first server that it gets its packages from.
    const server = sh(
      "apt-get indextargets --format '$(REPO_URI)' | sed -n 's,^https*://\\([^/:]*\\).*,\\1,p' | head -1",
    );
    expect(server).not.toBe("");
    const resolve = `getent ahostsv4 ${server} | head -1`;
    const host = sh(resolve);
    expect(ssh(node, resolve) === "").toBe(host === "");
    expect((await site.run("sliverd", "freeze", node.id, ...config)).code).toBe(0);
    expect((await site.run("release", lease)).code).toBe(0);
    await expect.poll(() => site.json("list"), { timeout: patient(60_000) }).toEqual([]);
  });

  test("explain says that a job was killed for its memory, now and when its node is gone", async () => {
    const { lease, nodes } = await site.json<Granted>("request", "small", "--wait");
    const [node] = nodes as [Granted["nodes"][number]];
    expect(() => ssh(node, "tail /dev/zero")).toThrow();
    const reported = /its memory \(96 MiB\) was full: the kernel killed \d+ process/;
    await machine.until(({ slivers }) => slivers.some(({ memoryKills = 0 }) => memoryKills > 0));
    expect((await site.run("explain", node.id)).out).toMatch(reported);
    const socket = join(site.state, "http.sock");
    const scrape = () =>
      execFileSync("curl", ["-sS", "--unix-socket", socket, "http://x/metrics"], { encoding: "utf8" });
    // The use of disks is read every five seconds, so that of a new sliver appears later than the rest.
    await expect.poll(scrape).toMatch(/^nodeyard_sliver_disk_bytes\{/m);
    const page = scrape();
    expect(page).toMatch(new RegExp(`^nodeyard_sliver_memory_kills\\{.*node="${node.id}".*\\} [1-9]`, "m"));
    for (const name of ["cpu_seconds", "io_bytes", "disk_bytes", "pids"])
      expect(page).toMatch(new RegExp(`^nodeyard_sliver_${name}\\{`, "m"));
    expect(page).toMatch(/^nodeyard_sliver_memory_bytes\{provider="lab",machine="here",.*\} [1-9]/m);
    expect((await site.run("release", lease)).code).toBe(0);
    await expect.poll(() => site.json("list"), { timeout: patient(60_000) }).toEqual([]);
    expect((await site.run("explain", node.id)).out).toMatch(reported);
  });

  test("explain says that the disk of a job is full, though df shows room", async () => {
    const { lease, nodes } = await site.json<Granted>("request", "small", "--wait");
    const [node] = nodes as [Granted["nodes"][number]];
    expect(ssh(node, "head -c 80000000 /dev/zero >full 2>/dev/null || echo no more")).toBe("no more");
    // btrfs counts what it has committed; by itself it does so twice a minute.
    execFileSync("btrfs", ["filesystem", "sync", join(folder, "pool")]);
    await machine.until(({ slivers }) => slivers.some(({ usage }) => (usage?.disk ?? 0) > 60 * 1_048_576));
    expect((await site.run("explain", node.id)).out).toMatch(
      /its disk \(64 MiB\) is nearly full: it uses 6\d MiB/,
    );
    expect((await site.run("release", lease)).code).toBe(0);
    await expect.poll(() => site.json("list"), { timeout: patient(60_000) }).toEqual([]);
  });
});
