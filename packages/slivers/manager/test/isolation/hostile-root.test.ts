import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { replaceHostile } from "../../src/isolation/edge/files.ts";
import { fitEngines, fitImageRoot } from "../../src/isolation/lxc/edge/root-files.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";
import { inJail, unpackInJail } from "../../src/isolation/storage/edge/jail.ts";
import { type TarMember, tarOf } from "./machine/tar.ts";

const noRoot = requireRoot();
const { signal } = new AbortController();

describe("an image with hostile content", () => {
  let folder: string;
  let root: string;
  let archive: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-hostile-"));
    root = join(folder, "root");
    archive = join(folder, "archive.tar");
    mkdirSync(root);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const names = namesOf(7, "10.213");
  const FILES = ["passwd", "group", "shadow"] as const;
  const base = (without?: string): TarMember[] => [
    { name: "./etc", type: "5", mode: 0o755 },
    { name: "./home", type: "5", mode: 0o755 },
    ...FILES.filter((file) => file !== without).map((file) => ({
      name: `./etc/${file}`,
      content: "root:x:0:\n",
    })),
  ];
  const unpacked = (members: readonly TarMember[]) => {
    writeFileSync(archive, tarOf(members));
    return unpackInJail([archive], root, signal);
  };
  const put: Readonly<Record<string, Omit<TarMember, "name">>> = {
    "a FIFO": { type: "6" },
    "a device": { type: "3", device: [1, 3] },
    "a long file": { content: "x".repeat(131_073 + 512) },
    "a link": { type: "2", link: "/etc/hostname" },
    "a folder": { type: "5" },
  };
  test("settings of container engines are written into a root, but through no link, and not over its own", async () => {
    await fitEngines(root);
    const docker = join(root, "etc/docker/daemon.json");
    expect(JSON.parse(readFileSync(docker, "utf8"))).toEqual({ "storage-driver": "overlay2" });
    writeFileSync(docker, "its own");
    await fitEngines(root);
    expect(readFileSync(docker, "utf8")).toBe("its own");
    rmSync(join(root, "etc/docker"), { recursive: true });
    mkdirSync(join(folder, "outside"));
    symlinkSync(join(folder, "outside"), join(root, "etc/docker"));
    await expect(fitEngines(root)).rejects.toThrow("must not be a symbolic link");
    expect(readdirSync(join(folder, "outside"))).toEqual([]);
  });
  const cases = Object.keys(put).flatMap((what) => FILES.map((file) => [what, file] as const));
  test.skipIf(noRoot).each(cases)("%s as %s is not read, and no sliver is made of it", async (what, file) => {
    const accounts = await unpacked([...base(file), { name: `./etc/${file}`, ...put[what]! }]);
    expect(Object.keys(accounts).sort()).toEqual(FILES.filter((one) => one !== file).sort());
    const fitted = fitImageRoot(root, names, accounts);
    if (file === "shadow" && what !== "a link") await fitted;
    else await expect(fitted).rejects.toMatchObject({ code: "sliver.image" });
  });

  test.skipIf(noRoot)("a folder of accounts that is a link is not followed", async () => {
    mkdirSync(join(folder, "other"));
    writeFileSync(join(folder, "other/passwd"), "root:x:0:0::/root:/bin/sh\n");
    const accounts = await unpacked([{ name: "./etc", type: "2", link: "/usr/share/base-passwd" }]);
    expect(accounts).toEqual({});
    await expect(fitImageRoot(root, names, accounts)).rejects.toMatchObject({ code: "sliver.image" });
  });

  test.skipIf(noRoot)("the login is added to what the image has, with its modes and groups", async () => {
    const shadow = { name: "./etc/shadow", content: "root:*:1::::::\nny-07:!:1::::::", mode: 0o640 };
    const accounts = await unpacked([...base("shadow"), shadow]);
    await fitImageRoot(root, names, accounts);
    expect(readFileSync(join(root, "etc/passwd"), "utf8")).toMatch(
      /^root:x:0:\nny-07:x:1000:1000::\/home\/ny-07:\/bin\/bash\n$/,
    );
    expect(readFileSync(join(root, "etc/shadow"), "utf8")).toBe(
      "root:*:1::::::\nny-07:*:19000:0:99999:7:::\n",
    );
    expect(statSync(join(root, "etc/shadow")).mode & 0o777).toBe(0o640);
    expect(statSync(join(root, "home/ny-07")).uid).toBe(1000);
  });

  test.skipIf(noRoot)("who takes over what unpacks it reaches nothing of the machine", async () => {
    writeFileSync(archive, "");
    const outside = join(folder, "outside");
    const attempts = [
      `touch /usr/taken`,
      `mount -t tmpfs none /usr`,
      `mount -o remount,rw /usr`,
      `mknod /image/null c 1 3 && echo x >/image/null`,
      `chroot / true`,
      `ls ${folder}`,
      `cat /etc/passwd`,
      `ls /proc/1`,
      `echo x >/archives/100`,
      `touch /taken`,
      `rm /bin`,
      `: >/dev/tcp/127.0.0.1/1`,
      `setpriv --reuid=65534 true`,
      `unshare -U true`,
      `[ "$(ls /sys/class/net 2>/dev/null)" ]`,
      `kill -0 ${process.pid}`,
    ];
    const script = attempts.map((one, at) => `if (${one}) >/dev/null 2>&1; then echo ${at}; fi`).join("\n");
    const through = (await inJail(script, [archive], root, signal)).split("\n").filter((line) => line !== "");
    expect(through.map((at) => attempts[Number(at)])).toEqual([]);
    expect(existsSync("/usr/taken")).toBe(false);
    expect(existsSync(outside)).toBe(false);
    expect(readdirSync("/sys").length).toBeGreaterThan(3);
  });

  test.skipIf(noRoot)(
    "one that never ends is ended with its processes; one that needs too much memory ends itself",
    async () => {
      writeFileSync(archive, "");
      const stop = new AbortController();
      const work = inJail("echo x >/image/began; sleep 1000 & sleep 1000", [archive], root, stop.signal);
      work.catch(() => undefined);
      await expect.poll(() => existsSync(join(root, "began"))).toBe(true);
      stop.abort(new Error("late"));
      await expect(work).rejects.toThrow("late");
      const left = () =>
        execFileSync("sh", ["-c", "ps -eo args | grep '[s]leep 1000' || true"], { encoding: "utf8" });
      await expect.poll(left).toBe("");
      await expect(
        inJail("perl -e 'my $x = \"x\" x (600 << 20)'", [archive], root, signal),
      ).rejects.toMatchObject({ code: "sliver.command" });
    },
  );

  test("FIFOs and links where files are written: they are replaced, and nothing is written through them", async () => {
    mkdirSync(join(root, "etc/sudoers.d"), { recursive: true });
    const places = ["hostname", "passwd", "sudoers.d/nodeyard"].map((name) => join(root, "etc", name));
    const outside = join(folder, "outside");
    writeFileSync(outside, "outside");
    for (const make of [
      (path: string) => execFileSync("mkfifo", [path]),
      (path: string) => symlinkSync(outside, path),
    ])
      for (const path of places) {
        rmSync(path, { force: true });
        make(path);
        await replaceHostile(path, "ours");
        expect(readFileSync(path, "utf8")).toBe("ours");
      }
    expect(readFileSync(outside, "utf8")).toBe("outside");
  });
});
