import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ImageSource, Images, Pool, Subvolumes } from "../../src/isolation/storage/index.ts";
import { whyNot } from "./machine/rig.ts";
import { type TarMember, tarOf } from "./machine/tar.ts";

const { signal } = new AbortController();
const MAKER = join(import.meta.dirname, "machine/image-maker.ts");
/** What an image must have; as diskimage-builder writes names. */
const ROOT: readonly TarMember[] = [
  { name: "./usr/sbin/sshd", content: "sshd" },
  { name: "./usr/bin/setpriv", content: "setpriv" },
];

describe.skipIf(whyNot() !== undefined)("images", { timeout: 120_000 }, () => {
  let folder: string;
  let pool: Pool;
  let said: string[];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-images-"));
    said = [];
    pool = newPool();
    await pool.prepare(signal);
  });
  afterEach(async () => {
    await pool.leave(signal);
    rmSync(folder, { recursive: true, force: true });
  });

  const newPool = (bytes = 268_435_456) =>
    new Pool(join(folder, "pool"), join(folder, "pool.img"), bytes, {
      clock: systemClock,
      onProgress: (line) => void said.push(line),
    });
  const imagesOf = (sources: Readonly<Record<string, ImageSource>>) =>
    new Images(pool, {
      sources,
      cache: join(folder, "cache"),
      clock: systemClock,
      onProgress: (line) => void said.push(line),
    });
  const archive = (members: readonly TarMember[], name = "image.tar") => {
    const path = join(folder, name);
    writeFileSync(path, tarOf(members));
    return path;
  };
  const inPool = () => readdirSync(join(folder, "pool", "images")).sort();

  test("an archive is unpacked once, under its digest, and never written again", async () => {
    const tar = archive(ROOT);
    const path = await imagesOf({ a: { tar } }).ensure("a", signal);
    expect(path).toMatch(/\/images\/[0-9a-f]{64}$/);
    expect(said).toHaveLength(1);
    expect(() => writeFileSync(join(path, "usr/sbin/sshd"), "other")).toThrow(/EROFS/);
    // Another process, another name, the same content.
    expect(await imagesOf({ b: { tar } }).ensure("b", signal)).toBe(path);
    expect(said).toHaveLength(1);
  });

  test("who asks at the same time, by whatever name, gets the same one", async () => {
    const tar = archive(ROOT);
    const digest = createHash("sha256").update(readFileSync(tar)).digest("hex");
    const images = imagesOf({ a: { tar }, b: { tar } });
    const asked = ["a", "b", `sha256:${digest}`, "a"].map((name) => images.ensure(name, signal));
    const [path] = await Promise.all(asked);
    expect(new Set(await Promise.all(asked))).toEqual(new Set([path]));
    expect(said).toHaveLength(1);
    expect(inPool()).toEqual([digest]);
  });

  test("a folder has the digest of its content", async () => {
    const tree = join(folder, "tree");
    for (const { name, content } of ROOT) {
      mkdirSync(join(tree, name, ".."), { recursive: true });
      writeFileSync(join(tree, name), content!);
    }
    const images = imagesOf({ tree: { folder: tree } });
    const first = await images.ensure("tree", signal);
    expect(await images.ensure("tree", signal)).toBe(first);
    writeFileSync(join(tree, "new"), "new");
    const second = await images.ensure("tree", signal);
    expect(second).not.toBe(first);
    expect(existsSync(join(second, "new"))).toBe(true);
  });

  test("the digest that was asked for, or nothing", async () => {
    const tar = archive(ROOT);
    const sha256 = (await imagesOf({ a: { tar } }).ensure("a", signal)).slice(-64);
    await imagesOf({ a: { tar, sha256 } }).ensure("a", signal);
    archive([...ROOT, { name: "./more" }]);
    await expect(imagesOf({ a: { tar, sha256 } }).ensure("a", signal)).rejects.toThrow(
      new RegExp(`has sha256 [0-9a-f]{64}, and should have ${sha256}`),
    );
    expect(inPool()).toEqual([sha256]);
  });

  test("the pool keeps its size, and says so when another is asked for", async () => {
    const { size } = await pool.space();
    await pool.leave(signal);
    await newPool(300_000_000).prepare(signal);
    expect(said).toEqual([
      `the pool ${join(folder, "pool.img")} has 268435456 bytes, and isolation.pool.bytes says 300000000: it stays as it is until it is made anew, after sliverd --dismantle`,
    ]);
    expect((await pool.space()).size).toBe(size);
  });

  test("by its digest: an unpacked one, or what a name stands for, and never another", async () => {
    const tar = archive(ROOT);
    const other = archive([...ROOT, { name: "./more" }], "other.tar");
    const digest = createHash("sha256").update(readFileSync(tar)).digest("hex");
    const images = imagesOf({ a: { tar }, other: { tar: other }, gone: { tar: "/none" } });
    const path = await images.ensure(`sha256:${digest}`, signal);
    expect(path).toBe(await images.ensure("a", signal));
    expect(inPool()).toEqual([digest]);
    // Another archive has its place, and it is there still.
    archive([...ROOT, { name: "./next" }]);
    expect(await imagesOf({ a: { tar } }).ensure(`sha256:${digest}`, signal)).toBe(path);
    await imagesOf({}).retire(signal);
    await expect(images.ensure(`sha256:${digest}`, signal)).rejects.toThrow(
      new RegExp(`no image sha256:${digest}; there is a .sha256:[0-9a-f]{64}., other .sha256:.*, gone$`),
    );
    expect(inPool()).toEqual([]);
  });

  const outside = (name: string) => join(tmpdir(), `nodeyard-outside-${process.pid}-${name}`);
  const hostile: Readonly<Record<string, readonly TarMember[]>> = {
    "a name that goes up": [{ name: `./../../../..${outside("up")}` }],
    "a link out, and a name through it": [
      { name: "./out", type: "2", link: tmpdir() },
      { name: `./out/${outside("through").split("/").at(-1)}` },
    ],
    "a link up, and a name through it": [
      { name: "./out", type: "2", link: "../../.." },
      { name: "./out/through" },
    ],
    "a hard link to a file of the host's": [{ name: "./passwd", type: "1", link: "/etc/hostname" }],
    "a hard link that goes up": [{ name: "./passwd", type: "1", link: "../../../../../etc/hostname" }],
    "a folder that replaces a link": [
      { name: "./out", type: "2", link: tmpdir() },
      { name: "./out", type: "5" },
      { name: "./out/../../../../../../../tmp/through" },
    ],
  };
  test.each(Object.entries(hostile))("%s is refused, and nothing is left", async (_, members) => {
    const links = statSync("/etc/hostname").nlink;
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith("nodeyard-outside-"));
    const images = imagesOf({ bad: { tar: archive([...ROOT, ...members]) } });
    await expect(images.ensure("bad", signal)).rejects.toMatchObject({ code: "sliver.image" });
    expect(inPool()).toEqual([]);
    expect(statSync("/etc/hostname").nlink).toBe(links);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("nodeyard-outside-"))).toEqual(before);
    expect(existsSync("/tmp/through")).toBe(false);
  });

  test("absolute names are the image's own, devices are left out, set-uid stays where nobody gets", async () => {
    const name = outside("absolute");
    const path = await imagesOf({
      odd: {
        tar: archive([
          ...ROOT,
          { name, content: "inside" },
          { name: "./dev/null", type: "3", device: [1, 3], mode: 0o666 },
          { name: "./dev/disk", type: "4", device: [254, 0], mode: 0o666 },
          { name: "./usr/bin/sudo", mode: 0o4755 },
        ]),
      },
    }).ensure("odd", signal);
    expect(existsSync(name)).toBe(false);
    expect(existsSync(join(path, name))).toBe(true);
    expect(readdirSync(join(path, "dev"))).toEqual([]);
    expect(statSync(join(path, "usr/bin/sudo")).mode & 0o7777).toBe(0o4755);
    expect(statSync(pool.folder).mode & 0o777).toBe(0o700);
  });

  test("what is no image is refused: cut off, without sshd, larger than the pool", async () => {
    const whole = tarOf([...ROOT, { name: "./big", content: "x".repeat(100_000) }]);
    const cut = join(folder, "cut.tar");
    writeFileSync(cut, whole.subarray(0, whole.length - 60_000));
    const bare = archive([{ name: "./etc/passwd" }], "bare.tar");
    const huge = archive([...ROOT, { name: "./huge", content: "x".repeat(300_000_000) }], "huge.tar");
    const images = imagesOf({
      cut: { tar: cut },
      bare: { tar: bare },
      huge: { tar: huge },
      none: { tar: "/none" },
    });
    for (const name of ["cut", "bare", "huge", "none", "other"])
      await expect(images.ensure(name, signal), name).rejects.toMatchObject({ code: "sliver.image" });
    expect(inPool()).toEqual([]);
    expect(await imagesOf({ a: { tar: archive(ROOT) } }).ensure("a", signal)).toMatch(/[0-9a-f]{64}$/);
  });

  test("what was half unpacked when its process was killed is made anew", async () => {
    const parts = Array.from({ length: 2000 }, (_, at) => ({
      name: `./part/${at}`,
      content: "x".repeat(9000),
    }));
    const tar = archive([...parts, ...ROOT]);
    const maker = spawn(process.execPath, [MAKER, folder, tar], { stdio: ["ignore", "pipe", "inherit"] });
    await once(maker.stdout, "data");
    maker.kill("SIGKILL");
    await once(maker, "exit");
    // What it had started goes with it, and does not work on beside the next one.
    for (let look = 0; look < 100 && processesOn(folder).length > 0; look++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(processesOn(folder)).toEqual([]);
    const images = imagesOf({ big: { tar } });
    await images.tidy(signal);
    expect(inPool().filter((name) => name.endsWith(".new"))).toEqual([]);
    const path = await images.ensure("big", signal);
    expect(readdirSync(join(path, "part"))).toHaveLength(2000);
    expect(inPool()).toEqual([path.slice(-64)]);
  });

  test("an old one goes when no name stands for it and no sliver is a copy of it", async () => {
    const tar = archive(ROOT);
    const images = imagesOf({ a: { tar } });
    const old = (await images.ensure("a", signal)).slice(-64);
    const subvolumes = new Subvolumes(pool);
    await subvolumes.make("ny-1.1", join(pool.folder, "images", old), signal);
    await images.retire(signal);
    expect(inPool()).toEqual([old]);

    archive([...ROOT, { name: "./more" }]);
    const next = (await images.ensure("a", signal)).slice(-64);
    await images.retire(signal);
    // Without it the sliver would hold alone what it shares now, and be above its limit of disk.
    expect(inPool()).toEqual([old, next].sort());

    await subvolumes.remove("ny-1.1", signal);
    // Another process, which has never read the archive.
    await imagesOf({ a: { tar } }).retire(signal);
    expect(inPool()).toEqual([next]);
    await imagesOf({ other: { tar } }).retire(signal);
    expect(inPool()).toEqual([]);
  });

  test("a removed root's quota group goes on every kernel, also when who removed it was killed before that", async () => {
    const subvolumes = new Subvolumes(pool);
    const made = async (mark: string): Promise<string> => {
      await subvolumes.make(mark, undefined, signal);
      await subvolumes.limit(mark, 16_384, signal);
      writeFileSync(join(subvolumes.path(mark), "f"), "x".repeat(100_000));
      const id = execFileSync("btrfs", ["inspect-internal", "rootid", subvolumes.path(mark)], {
        encoding: "utf8",
      }).trim();
      expect(groups()).toContain(`0/${id}`);
      return id;
    };
    const groups = () =>
      execFileSync("btrfs", ["qgroup", "show", "--raw", pool.folder], { encoding: "utf8" })
        .split("\n")
        .map((line) => line.split(/\s/)[0]);
    const notes = () => readdirSync(join(pool.folder, "groups"));

    const first = await made("ny-1.1");
    await subvolumes.remove("ny-1.1", signal);
    await pool.groups.hurry(signal);
    expect(groups()).not.toContain(`0/${first}`);
    expect(notes()).toEqual([]);

    const [second, third] = [await made("ny-2.2"), await made("ny-3.3")];
    await subvolumes.remove("ny-2.2", signal);
    // As if it had ended here, and between the note of another and its removal.
    await pool.groups.owe(Number(third));
    await pool.groups.stop();
    expect(notes().sort()).toEqual([second, third].sort());
    const next = newPool();
    await next.prepare(signal);
    await next.groups.hurry(signal);
    expect(groups()).not.toContain(`0/${second}`);
    expect(groups()).toContain(`0/${third}`);
    expect(notes()).toEqual([third]);
    await new Subvolumes(next).remove("ny-3.3", signal);
    await next.groups.hurry(signal);
    expect(groups()).not.toContain(`0/${third}`);
    expect([notes(), [...next.groups.stuck], said]).toEqual([[], [], []]);
    await next.groups.stop();
  });
});

/** Programs that were told of this folder. */
function processesOn(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    })
    .filter((command) => command.includes(folder));
}
