import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { fitImageRoot } from "../../src/isolation/lxc/edge/root-files.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";
import { KEPT_HOME } from "../../src/isolation/storage/edge/jail.ts";
import { Subvolumes } from "../../src/isolation/storage/edge/subvolumes.ts";
import { ImageLab, ROOT } from "./machine/image-lab.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf } from "./machine/slivers.ts";

const { signal } = new AbortController();
const MACHINE = join(import.meta.dirname, "machine");
const ETC = ["passwd", "group"].map((name) => ({ name: `./etc/${name}`, content: "root:x:0:\n" }));

describe.skipIf(whyNot() !== undefined)("a sliver's root as an image", () => {
  let lab: ImageLab;
  beforeEach(async () => {
    lab = new ImageLab();
    await lab.prepare();
  });
  afterEach(() => lab.stop());

  test("is what the sliver had, without what would hold up or name its copies; it lives as long as they do", async () => {
    const sources = { base: { tar: lab.archive([...ROOT, ...ETC, { name: "./home", type: "5" }]) } };
    const images = lab.images(sources);
    const subvolumes = new Subvolumes(lab.pool);
    const of = async (mark: string, image: string, index: number) => {
      const path = await images.ensure(image, signal);
      await subvolumes.make(mark, path, 1024, signal);
      await fitImageRoot(subvolumes.path(mark), namesOf(index, "10.213"), await images.roots.accounts(path));
      return subvolumes.path(mark);
    };
    const root = await of("ny-1.1", "base", 1);
    writeFileSync(join(root, "home/ny-01/built"), "built");
    writeFileSync(join(root, "etc/passwd"), `${readFileSync(join(root, "etc/passwd"), "utf8")}git:x:105:\n`);
    mkdirSync(join(root, "etc/ssh"));
    writeFileSync(join(root, "etc/ssh/ssh_host_rsa_key"), "its own");
    execFileSync("mkfifo", [join(root, "pipe")]);
    await images.snapshot("warm", root, { user: "ny-01", disk: 1024 }, signal);

    const copy = await of("ny-2.2", "warm", 2);
    expect(readdirSync(join(copy, "home"))).toEqual(["ny-02"]);
    expect(readFileSync(join(copy, "home/ny-02/built"), "utf8")).toBe("built");
    expect(readFileSync(join(copy, "etc/passwd"), "utf8")).toBe(
      "root:x:0:\ngit:x:105:\nny-02:x:1000:1000::/home/ny-02:/bin/bash\n",
    );
    expect([readdirSync(join(copy, "etc/ssh")), existsSync(join(copy, "pipe"))]).toEqual([[], false]);
    // What one does reaches no other.
    writeFileSync(join(copy, "home/ny-02/built"), "changed");
    const third = await of("ny-3.3", "warm", 3);
    expect(readFileSync(join(third, "home/ny-03/built"), "utf8")).toBe("built");
    expect(statSync(join(root, "home/ny-01")).isDirectory()).toBe(true);

    // Another process knows it, and a newer one takes its place.
    const path = await lab.images(sources).ensure("warm", signal);
    await images.snapshot("warm", third, { user: "ny-03", disk: 1024 }, signal);
    expect(await images.ensure("warm", signal)).not.toBe(path);
    expect(lab.inPool()).toHaveLength(3);
    for (const mark of ["ny-1.1", "ny-2.2", "ny-3.3"]) await subvolumes.remove(mark, signal);
    await images.forget("warm", signal);
    expect(lab.inPool()).toEqual([(await images.ensure("base", signal)).slice(-64)]);
    await expect(images.ensure("warm", signal)).rejects.toThrow('there is no image "warm"; there is base');
  });

  test("is refused where the name is taken, the pool has no room or the root is none, and nothing is left", async () => {
    const images = lab.images({ base: { tar: lab.archive(ROOT) } });
    const subvolumes = new Subvolumes(lab.pool);
    await subvolumes.make("ny-1.1", undefined, 1024, signal);
    const of = (name: string, mark: string, disk: number) =>
      images.snapshot(name, subvolumes.path(mark), { user: "ny-01", disk }, signal);
    await expect(of("base", "ny-1.1", 1024)).rejects.toThrow("choose another name");
    await expect(of("warm", "ny-1.1", 1_000_000)).rejects.toMatchObject({ code: "sliver.pool_full" });
    await expect(of("warm", "ny-9.9", 1024)).rejects.toMatchObject({ code: "sliver.command" });
    await expect(images.forget("warm", signal)).rejects.toThrow("there is no snapshot warm; there is none");
    expect(lab.inPool()).toEqual([]);
  });

  test("that is interrupted at any of its steps leaves the earlier image or the new one, whole, and nothing else", async () => {
    const subvolumes = new Subvolumes(lab.pool);
    await subvolumes.make("ny-1.1", undefined, 1024, signal);
    const root = subvolumes.path("ny-1.1");
    for (const folder of ["usr/sbin", "usr/bin", "etc", "home/ny-01"])
      mkdirSync(join(root, folder), { recursive: true });
    for (const file of ["usr/sbin/sshd", "usr/bin/setpriv"]) writeFileSync(join(root, file), file);
    for (const file of ["etc/passwd", "etc/group"]) writeFileSync(join(root, file), "root:x:0:\n");
    const reported = join(lab.folder, "told");
    /** What it died at; undefined when it came to its end before. */
    const dyingAt = (at: string): string | undefined => {
      rmSync(reported, { force: true });
      const words = ["--disable-warning=ExperimentalWarning", "--import", join(MACHINE, "die-at.ts")];
      spawnSync(
        process.execPath,
        [...words, join(MACHINE, "snapshot-once.ts"), join(lab.folder, "pool"), root],
        {
          env: { ...process.env, NODEYARD_DIE_AT: at, NODEYARD_DIE_TELL: reported },
          stdio: ["ignore", "inherit", "inherit"],
        },
      );
      return existsSync(reported) ? readFileSync(reported, "utf8") : undefined;
    };
    writeFileSync(join(root, "home/ny-01/version"), "0");
    expect(dyingAt("1000000")).toBeUndefined();
    let before = "0";
    const seen = new Set<string>();
    for (let step = 1, died = true; died; step++) {
      for (const when of [`${step}`, `${step}+`]) {
        writeFileSync(join(root, "home/ny-01/version"), when);
        const what = dyingAt(when);
        died = what !== undefined;
        // As the manager's next start does.
        const images = lab.images({});
        await images.tidy(signal);
        await images.retire(signal);
        const path = await images.ensure("warm", signal);
        const now = readFileSync(join(path, "home", KEPT_HOME, "version"), "utf8");
        expect([before, when], `${when}: ${what}`).toContain(now);
        expect((await images.roots.accounts(path)).passwd?.text, `${when}: ${what}`).toBe("root:x:0:\n");
        expect(lab.inPool(), `${when}: ${what}`).toEqual([basename(path)]);
        seen.add(now === before ? "earlier" : "new");
        before = now;
      }
    }
    expect([...seen].sort()).toEqual(["earlier", "new"]);
  });
});

describe.skipIf(whyNot() !== undefined)("a warm start", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterAll(() => real?.stop());

  test("a sliver that was prepared starts as many, with what was prepared and its own name, key and login", async () => {
    const backEnd = real.backEnd("container");
    const [first, ...copies] = configsOf(real.key, { 1: {}, 2: {}, 3: {} });
    await bringUp(backEnd, [first!]);
    real.ssh(addressOf(1), "echo mine >prepared; echo all | sudo tee /opt/prepared; mkfifo pipe");
    await backEnd.snapshot({ index: 1, incarnation: 1 }, "warm", signal);
    await backEnd.destroy({ index: 1, incarnation: 1 }, signal);
    await bringUp(
      backEnd,
      copies.map((config) => ({ ...config, image: "warm" })),
    );
    for (const index of [2, 3])
      expect(
        real
          .ssh(addressOf(index), "whoami; hostname; cat prepared /opt/prepared; ls", `ny-0${index}`)
          .split("\n"),
      ).toEqual([`ny-0${index}`, `ny-0${index}`, "mine", "all", "prepared", ""]);
    // A spare's image is a former one when there is a newer snapshot of that name, or none any more.
    const [spare] = configsOf(real.key, { 1: {} });
    await bringUp(backEnd, [{ ...spare!, name: "spare.1", image: "warm" }]);
    const outdated = async () => (await backEnd.inspect(signal)).map((one) => one.outdated ?? false);
    expect(await outdated()).toEqual([false, false, false]);
    await backEnd.snapshot({ index: 2, incarnation: 2 }, "warm", signal);
    expect(await outdated()).toEqual([true, false, false]);
    for (const index of [1, 2, 3]) await backEnd.destroy({ index, incarnation: index }, signal);
    await backEnd.forgetSnapshot("warm", signal);
    expect(await real.leftovers()).toEqual([]);
  });
});
