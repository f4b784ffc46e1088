import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Subvolumes } from "../../src/isolation/storage/edge/subvolumes.ts";
import { ImageLab, ROOT } from "./machine/image-lab.ts";
import { whyNot } from "./machine/rig.ts";

const { signal } = new AbortController();
const MAKER = join(import.meta.dirname, "machine/image-maker.ts");

describe.skipIf(whyNot() !== undefined)("images", () => {
  let lab: ImageLab;
  beforeEach(async () => {
    lab = new ImageLab();
    await lab.prepare();
  });
  afterEach(() => lab.stop());

  test("an archive is unpacked once, under its digest, and never written again", async () => {
    const tar = lab.archive(ROOT);
    const path = await lab.images({ a: { tar } }).ensure("a", signal);
    expect(path).toMatch(/\/images\/[0-9a-f]{64}$/);
    expect(lab.said).toHaveLength(1);
    expect(() => writeFileSync(join(path, "usr/sbin/sshd"), "other")).toThrow(/EROFS/);
    // Another process, another name, the same content.
    expect(await lab.images({ b: { tar } }).ensure("b", signal)).toBe(path);
    expect(lab.said).toHaveLength(1);
  });

  test("who asks at the same time, by whatever name, gets the same one", async () => {
    const tar = lab.archive(ROOT);
    const digest = createHash("sha256").update(readFileSync(tar)).digest("hex");
    const images = lab.images({ a: { tar }, b: { tar } });
    const asked = ["a", "b", `sha256:${digest}`, "a"].map((name) => images.ensure(name, signal));
    const [path] = await Promise.all(asked);
    expect(new Set(await Promise.all(asked))).toEqual(new Set([path]));
    expect(lab.said).toHaveLength(1);
    expect(lab.inPool()).toEqual([digest]);
  });

  test("a folder has the digest of its content", async () => {
    const tree = join(lab.folder, "tree");
    for (const { name, content } of ROOT) {
      mkdirSync(join(tree, name, ".."), { recursive: true });
      writeFileSync(join(tree, name), content!);
    }
    const images = lab.images({ tree: { folder: tree } });
    const first = await images.ensure("tree", signal);
    expect(await images.ensure("tree", signal)).toBe(first);
    writeFileSync(join(tree, "new"), "new");
    const second = await images.ensure("tree", signal);
    expect(second).not.toBe(first);
    expect(existsSync(join(second, "new"))).toBe(true);
  });

  test("the digest that was asked for, or nothing", async () => {
    const tar = lab.archive(ROOT);
    const sha256 = (await lab.images({ a: { tar } }).ensure("a", signal)).slice(-64);
    await lab.images({ a: { tar, sha256 } }).ensure("a", signal);
    lab.archive([...ROOT, { name: "./more" }]);
    await expect(lab.images({ a: { tar, sha256 } }).ensure("a", signal)).rejects.toThrow(
      new RegExp(`has sha256 [0-9a-f]{64}, and should have ${sha256}`),
    );
    expect(lab.inPool()).toEqual([sha256]);
  });

  test("the pool keeps its size, and says so when another is asked for", async () => {
    const { size } = await lab.pool.space();
    await lab.pool.leave(signal);
    await lab.newPool(300_000_000).prepare(signal);
    expect(lab.said).toEqual([
      `the pool ${join(lab.folder, "pool.img")} has 268435456 bytes, and isolation.pool.bytes says 300000000: it keeps its size until it is created again, after sliverd --dismantle`,
    ]);
    expect((await lab.pool.space()).size).toBe(size);
  });

  test("by its digest: an unpacked one, or what a name stands for, and never another", async () => {
    const tar = lab.archive(ROOT);
    const other = lab.archive([...ROOT, { name: "./more" }], "other.tar");
    const digest = createHash("sha256").update(readFileSync(tar)).digest("hex");
    const images = lab.images({ a: { tar }, other: { tar: other }, gone: { tar: "/none" } });
    const path = await images.ensure(`sha256:${digest}`, signal);
    expect(path).toBe(await images.ensure("a", signal));
    expect(lab.inPool()).toEqual([digest]);
    // Another archive has its place, and it is there still.
    lab.archive([...ROOT, { name: "./next" }]);
    expect(await lab.images({ a: { tar } }).ensure(`sha256:${digest}`, signal)).toBe(path);
    await lab.images({}).retire(signal);
    await expect(images.ensure(`sha256:${digest}`, signal)).rejects.toThrow(
      new RegExp(`no image sha256:${digest}; there is a .sha256:[0-9a-f]{64}., other .sha256:.*, gone$`),
    );
    expect(lab.inPool()).toEqual([]);
  });

  test("what was half unpacked when its process was killed is made anew", async () => {
    const parts = Array.from({ length: 2000 }, (_, at) => ({
      name: `./part/${at}`,
      content: "x".repeat(9000),
    }));
    const tar = lab.archive([...parts, ...ROOT]);
    const maker = spawn(process.execPath, [MAKER, lab.folder, tar], { stdio: ["ignore", "pipe", "inherit"] });
    await once(maker.stdout, "data");
    maker.kill("SIGKILL");
    await once(maker, "exit");
    // Its programs go with it, and do not work on beside the next one.
    for (let look = 0; look < 100 && processesOn(lab.folder).length > 0; look++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(processesOn(lab.folder)).toEqual([]);
    const images = lab.images({ big: { tar } });
    await images.tidy(signal);
    expect(lab.inPool().filter((name) => name.endsWith(".new"))).toEqual([]);
    const path = await images.ensure("big", signal);
    expect(readdirSync(join(path, "part"))).toHaveLength(2000);
    expect(lab.inPool()).toEqual([path.slice(-64)]);
  });

  test("an old one goes when no name stands for it and no sliver is a copy of it", async () => {
    const tar = lab.archive(ROOT);
    const images = lab.images({ a: { tar } });
    const old = (await images.ensure("a", signal)).slice(-64);
    const subvolumes = new Subvolumes(lab.pool);
    await subvolumes.make("ny-1.1", join(lab.pool.folder, "images", old), 0, signal);
    await images.retire(signal);
    expect(lab.inPool()).toEqual([old]);

    lab.archive([...ROOT, { name: "./more" }]);
    const next = (await images.ensure("a", signal)).slice(-64);
    await images.retire(signal);
    // Without it the sliver would hold alone what it shares now, and be above its limit of disk.
    expect(lab.inPool()).toEqual([old, next].sort());

    await subvolumes.remove("ny-1.1", signal);
    // Another process, which has never read the archive.
    await lab.images({ a: { tar } }).retire(signal);
    expect(lab.inPool()).toEqual([next]);
    // What a removal that failed left half made goes as well.
    execFileSync("btrfs", ["subvolume", "create", join(lab.pool.folder, "images", `${old}.new`)]);
    await lab.images({ other: { tar } }).retire(signal);
    expect(lab.inPool()).toEqual([]);
  });

  test("a removed root's quota group goes on every kernel, also when who removed it was killed before that", async () => {
    const subvolumes = new Subvolumes(lab.pool);
    const made = async (mark: string): Promise<string> => {
      await subvolumes.make(mark, undefined, 0, signal);
      await subvolumes.limit(mark, 16_384, signal);
      writeFileSync(join(subvolumes.path(mark), "f"), "x".repeat(100_000));
      const id = execFileSync("btrfs", ["inspect-internal", "rootid", subvolumes.path(mark)], {
        encoding: "utf8",
      }).trim();
      expect(groups()).toContain(`0/${id}`);
      return id;
    };
    const groups = () =>
      execFileSync("btrfs", ["qgroup", "show", "--raw", lab.pool.folder], { encoding: "utf8" })
        .split("\n")
        .map((line) => line.split(/\s/)[0]);
    const notes = () => readdirSync(join(lab.pool.folder, "groups"));

    const first = await made("ny-1.1");
    await subvolumes.remove("ny-1.1", signal);
    await lab.pool.groups.hurry(signal);
    expect(groups()).not.toContain(`0/${first}`);
    expect(notes()).toEqual([]);

    const [second, third] = [await made("ny-2.2"), await made("ny-3.3")];
    await subvolumes.remove("ny-2.2", signal);
    // As if it had ended here, and between the note of another and its removal.
    await lab.pool.groups.owe(Number(third));
    await lab.pool.groups.stop();
    expect(notes().sort()).toEqual([second, third].sort());
    const next = lab.newPool();
    await next.prepare(signal);
    await next.groups.hurry(signal);
    expect(groups()).not.toContain(`0/${second}`);
    expect(groups()).toContain(`0/${third}`);
    expect(notes()).toEqual([third]);
    await new Subvolumes(next).remove("ny-3.3", signal);
    await next.groups.hurry(signal);
    expect(groups()).not.toContain(`0/${third}`);
    expect([notes(), [...next.groups.stuck], lab.said]).toEqual([[], [], []]);
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
