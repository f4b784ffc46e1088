import { constants, copyFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { BackEnd } from "../../src/isolation/contract.ts";
import { archiveName } from "../../src/isolation/storage/edge/archives.ts";
import { ImageLab, ROOT } from "./machine/image-lab.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf } from "./machine/slivers.ts";
import { type TarMember, tarOf } from "./machine/tar.ts";

const { signal } = new AbortController();
const skip = whyNot() !== undefined;
/** Of these a half is drawn for a version on trial: 2, 4, 5. */
const [FIRST, DRAWN, NEXT] = [1, 2, 4];

describe.skipIf(skip)("versions of an image", () => {
  const RULES = { share: 0.5, launches: 2, maxAgeMs: 86_400_000 };
  let lab: ImageLab;
  beforeEach(async () => {
    lab = new ImageLab();
    await lab.prepare();
  });
  afterEach(() => lab.stop());

  test("the former one stays until the new one is proven, also over a restart, and goes then", async () => {
    const tar = lab.archive(ROOT);
    const of = (incarnation: number, images = lab.images({ a: { tar } }, RULES)) =>
      images.forSliver("a", incarnation, signal);
    // Before there were trials.
    const old = (await lab.images({ a: { tar } }).ensure("a", signal)).slice(-64);
    lab.archive([...ROOT, { name: "./more" }]);
    expect((await of(FIRST)).made).toEqual({ name: "a", digest: old, tried: false });
    const { path, made } = await of(DRAWN);
    expect([path.slice(-64), made.tried]).toEqual([made.digest, true]);
    expect(made.digest).not.toBe(old);
    const images = lab.images({ a: { tar } }, RULES);
    await images.tidy(signal);
    await images.retire(signal);
    expect(lab.inPool()).toEqual([old, made.digest].sort());
    // Spares of either are no old ones.
    const serving = () =>
      Promise.all([old, made.digest].map((digest) => images.serves({ name: "a", digest }, signal)));
    expect(await serving()).toEqual([true, true]);
    for (const incarnation of [DRAWN, NEXT]) await images.names.count(made, incarnation, 100);
    expect(images.names.trials?.report()).toMatchObject([{ version: made.digest, verdict: "promoted" }]);
    expect(await serving()).toEqual([false, true]);
    expect((await of(FIRST)).made.digest).toBe(made.digest);
    await lab.images({ a: { tar } }, RULES).retire(signal);
    expect(lab.inPool()).toEqual([made.digest]);
  });

  test("one that cannot be unpacked is rolled back and read once; one that is gone does not prevent the use of the former one", async () => {
    const tar = lab.archive(ROOT);
    const images = lab.images({ a: { tar } }, RULES);
    const { made } = await images.forSliver("a", DRAWN, signal);
    writeFileSync(tar, "no archive");
    for (const _ of [1, 2]) expect((await images.forSliver("a", DRAWN, signal)).made).toEqual(made);
    expect(images.names.trials?.report()).toMatchObject([{ image: "a", verdict: "rolled-back" }]);
    expect(lab.said.filter((line) => line.includes("unpacking"))).toHaveLength(2);
    rmSync(tar);
    expect((await images.forSliver("a", DRAWN, signal)).made).toEqual(made);
    expect(lab.said.at(-1)).toContain("the last one is used");
    // Without trials it is as ever.
    await expect(lab.images({ a: { tar } }).ensure("a", signal)).rejects.toThrow("ENOENT");
  });
});

describe.skipIf(skip)("slivers of a new version of their image", () => {
  let real: RealMachine;
  let backEnd: BackEnd;
  let tar: string;
  beforeAll(async () => {
    real = await realMachine();
    tar = join(real.folder, "..", `job-${process.pid}.tar`);
    const debian = archiveName({ debian: "bookworm", packages: [] });
    copyFileSync(join(tmpdir(), "nodeyard-image-cache", debian), tar, constants.COPYFILE_FICLONE);
    backEnd = real.machineWith({ images: { job: { tar } }, trial: { percent: 50, slivers: 1 } });
  });
  afterAll(async () => {
    rmSync(tar, { force: true });
    await real?.stop();
  });

  const configOf = (index: number) => ({ ...configsOf(real.key, { [index]: {} })[0]!, image: "job" });
  const replace = (...members: readonly TarMember[]) => {
    rmSync(tar);
    writeFileSync(tar, tarOf([...ROOT, ...members]));
  };
  const phases = async () => (await backEnd.inspect(signal)).map(({ index, phase }) => `${index} ${phase}`);

  test("that has no accounts, and then one without a shell, are made of the former one, and both are rolled back", async () => {
    await bringUp(backEnd, [configOf(FIRST)]);
    replace();
    await bringUp(backEnd, [configOf(DRAWN)]);
    expect(await phases()).toEqual(["1 running", "2 running"]);
    const [accounts] = backEnd.trials!();
    expect(accounts).toMatchObject({ image: "job", verdict: "rolled-back" });

    replace({ name: "./etc/passwd", content: "" }, { name: "./etc/group", content: "" });
    const config = configOf(NEXT);
    await backEnd.create(config, signal);
    expect((await backEnd.inspect(signal)).at(-1)?.triedVersion).toMatch(/^[0-9a-f]{64}$/);
    await backEnd.configure(config, signal);
    await expect(backEnd.start(config, signal)).rejects.toThrow("LXC did not start");
    const [shell] = backEnd.trials!();
    expect(shell).toMatchObject({ image: "job", verdict: "rolled-back" });
    expect(shell!.version).not.toBe(accounts!.version);
    // What the manager does with it.
    expect(await phases()).toEqual(["1 running", "2 running", "4 broken"]);
    await backEnd.destroy(config, signal);
    await bringUp(backEnd, [config]);
    expect(await phases()).toEqual(["1 running", "2 running", "4 running"]);
    expect((await backEnd.inspect(signal)).at(-1)?.triedVersion).toBe(undefined);
  });
});
