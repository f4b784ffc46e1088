import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { SliverMachine } from "../../src/isolation/lxc/edge/machine.ts";
import { isolationSchema } from "../../src/isolation/lxc/options.ts";
import { besideNeighbour } from "./machine/beside.ts";
import { ImageLab, ROOT } from "./machine/image-lab.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { configsOf } from "./machine/slivers.ts";
import { type TarMember, tarOf } from "./machine/tar.ts";

const { signal } = new AbortController();

describe.skipIf(whyNot() !== undefined)("what an archive may hold", () => {
  let lab: ImageLab;
  beforeEach(async () => {
    lab = new ImageLab();
    await lab.prepare();
  });
  afterEach(() => lab.stop());

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
    const images = lab.images({ bad: { tar: lab.archive([...ROOT, ...members]) } });
    await expect(images.ensure("bad", signal)).rejects.toMatchObject({ code: "sliver.image" });
    expect(lab.inPool()).toEqual([]);
    expect(statSync("/etc/hostname").nlink).toBe(links);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("nodeyard-outside-"))).toEqual(before);
    expect(existsSync("/tmp/through")).toBe(false);
  });

  test("absolute names are the image's own, devices, FIFOs and host keys are left out, set-uid files stay out of reach", async () => {
    const name = outside("absolute");
    const path = await lab
      .images({
        odd: {
          tar: lab.archive([
            ...ROOT,
            { name, content: "inside" },
            { name: "./dev/null", type: "3", device: [1, 3], mode: 0o666 },
            { name: "./dev/disk", type: "4", device: [254, 0], mode: 0o666 },
            { name: "./dev/initctl", type: "6" },
            { name: "./etc/ssh/ssh_host_rsa_key", type: "6" },
            { name: "./etc/ssh/ssh_host_ed25519_key", content: "shared by all copies" },
            { name: "./etc/ssh/ssh_config" },
            { name: "./usr/bin/sudo", mode: 0o4755 },
          ]),
        },
      })
      .ensure("odd", signal);
    expect(existsSync(name)).toBe(false);
    expect(existsSync(join(path, name))).toBe(true);
    expect(readdirSync(join(path, "dev"))).toEqual([]);
    expect(readdirSync(join(path, "etc/ssh"))).toEqual(["ssh_config"]);
    expect(statSync(join(path, "usr/bin/sudo")).mode & 0o7777).toBe(0o4755);
    expect(statSync(lab.pool.folder).mode & 0o777).toBe(0o700);
  });

  test("what is not an image is refused: cut off, without sshd, larger than the pool", async () => {
    const whole = tarOf([...ROOT, { name: "./big", content: "x".repeat(100_000) }]);
    const cut = join(lab.folder, "cut.tar");
    writeFileSync(cut, whole.subarray(0, whole.length - 60_000));
    const bare = lab.archive([{ name: "./etc/passwd" }], "bare.tar");
    const huge = lab.archive([...ROOT, { name: "./huge", content: "x".repeat(300_000_000) }], "huge.tar");
    const images = lab.images({
      cut: { tar: cut },
      bare: { tar: bare },
      huge: { tar: huge },
      none: { tar: "/none" },
    });
    for (const name of ["cut", "bare", "huge", "none", "other"])
      await expect(images.ensure(name, signal), name).rejects.toMatchObject({ code: "sliver.image" });
    // A full pool may refuse even a removal; what it refused goes with the next image that is retired.
    await images.retire(signal);
    expect(lab.inPool(), lab.said.join("\n")).toEqual([]);
    expect(await lab.images({ a: { tar: lab.archive(ROOT) } }).ensure("a", signal)).toMatch(/[0-9a-f]{64}$/);
  });

  test("links to the machine's own host keys are not followed", async () => {
    const keys = outside("keys");
    mkdirSync(join(keys, "ssh"), { recursive: true });
    writeFileSync(join(keys, "ssh/ssh_host_rsa_key"), "the machine's");
    try {
      const tar = lab.archive([...ROOT, { name: "./etc", type: "2", link: keys }]);
      await lab.images({ a: { tar } }).ensure("a", signal);
      expect(existsSync(join(keys, "ssh/ssh_host_rsa_key"))).toBe(true);
    } finally {
      rmSync(keys, { recursive: true });
    }
  });

  test("a sliver of an image with a huge passwd is refused within its limit of disk, and the next one is made", async () => {
    const groups: TarMember[] = [{ name: "./etc/group", content: "root:x:0:\n" }];
    const sources = {
      pipe: [...ROOT, ...groups, { name: "./etc/passwd", type: "6" }],
      huge: [...ROOT, ...groups, { name: "./etc/passwd", content: "x".repeat(2_000_000) }],
      good: [...ROOT, ...groups, { name: "./etc/passwd", content: "root:x:0:0::/root:/bin/sh\n" }],
    } satisfies Record<string, readonly TarMember[]>;
    const images = Object.fromEntries(
      Object.entries(sources).map(([name, members]) => [name, { tar: lab.archive(members, `${name}.tar`) }]),
    );
    const options = isolationSchema.parse({
      folder: join(lab.folder, "slivers"),
      pool: { bytes: 268_435_456 },
      images,
    });
    const machine = new SliverMachine({
      ...options,
      link: 1_000_000_000,
      memory: 1_073_741_824,
      clock: systemClock,
      onProgress: () => undefined,
    });
    const backEnd = new LxcBackEnd("container", machine);
    const [config] = configsOf("ssh-ed25519 AAAA", { 3: {} });
    try {
      for (const image of ["pipe", "huge"])
        await expect(backEnd.create({ ...config!, image }, signal), image).rejects.toMatchObject({
          code: "sliver.image",
        });
      // It was limited before its root was touched, which failed.
      const shown = execFileSync("btrfs", [
        "qgroup",
        "show",
        "-eF",
        "--raw",
        machine.subvolumes.path("ny-3.3"),
      ]);
      expect(shown.toString()).toContain(String(65_536 * 1024));
      await backEnd.create({ ...config!, image: "good" }, signal);
      expect((await backEnd.inspect(signal)).map(({ phase }) => phase)).toEqual(["created"]);
    } finally {
      await backEnd.destroy({ index: 3, incarnation: 3 }, signal);
      await machine.dismantle(signal);
    }
  });
});

describe.skipIf(whyNot() !== undefined)("beside archives that are refused", () => {
  /** Without sshd, which shows only when all of it is unpacked. */
  const REFUSED: Readonly<Record<string, readonly TarMember[]>> = {
    "many files": Array.from({ length: 20_000 }, (_, at) => ({ name: `./${at}`, content: "x" })),
    "a large file": [{ name: "./large", content: "x".repeat(300_000_000) }],
  };
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(() => real?.stop());

  test.each(Object.entries(REFUSED))(
    "%s, again and again, nothing of a neighbour's is worse",
    async (_, members) => {
      const tar = join(real.folder, "refused.tar");
      writeFileSync(tar, tarOf(members));
      const makers = real.machineWith({ images: { refused: { tar } } });
      const [config, made] = configsOf(real.key, { 1: {}, 2: {} });
      const refused = () =>
        expect(makers.create({ ...made!, image: "refused" }, signal)).rejects.toMatchObject({
          code: "sliver.image",
        });
      await besideNeighbour(real, real.backEnd("account"), {
        config: config!,
        attack: async (over, goesOn) => {
          await refused();
          const again = async () => {
            while (!over.aborted) await refused();
          };
          goesOn(again());
        },
      });
    },
  );
});
