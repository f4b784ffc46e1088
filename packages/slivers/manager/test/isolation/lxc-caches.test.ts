import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SliverVolume } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { SliverConfig } from "../../src/core/plan.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf, inSliver, loginOf } from "./machine/slivers.ts";

const { signal } = new AbortController();
const MIB = 1024;

describe.skipIf(whyNot() !== undefined)("caches of real slivers", () => {
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  beforeAll(async () => {
    real = await realMachine();
    backEnd = real.backEnd("account");
  });
  afterEach(async () => {
    await real.clear();
    for (const { id } of backEnd.caches()) await backEnd.changeCache(id, "delete", signal);
  });
  afterAll(() => real?.stop());

  const volume = (some: Partial<SliverVolume> = {}): SliverVolume => ({
    name: "build",
    path: "/cache/build",
    size: 64 * MIB,
    key: ["lab", "acme", "small"],
    commit: "success",
    ...some,
  });
  const sliver = (index: number, some: Partial<SliverVolume> = {}, more: Partial<SliverConfig> = {}) => ({
    ...configsOf(real.key, { [index]: {} })[0]!,
    volumes: [volume(some)],
    ...more,
  });
  const run = (index: number, script: string) => real.ssh(addressOf(index), script, loginOf(index));
  /** Ends a sliver as a manager does whose document said that its job ended well. */
  const endWell = async (config: SliverConfig) => {
    const volumes = config.volumes!.map((one) => ({ ...one, commit: "at-end" as const }));
    await backEnd.configure({ ...config, volumes, digest: `${config.digest} well` }, signal);
    await backEnd.destroy(config, signal);
  };
  const startOf = async (index: number) =>
    (await backEnd.inspect(signal)).find((one) => one.index === index)?.volumes?.[0];

  test("what a job leaves is what the next one finds, as its own, and nobody before it ended well", async () => {
    const [first, second] = [sliver(1), sliver(2)];
    await bringUp(backEnd, [first]);
    expect(await startOf(1)).toMatchObject({ why: "this machine has no cache build of lab/acme/small" });
    run(1, "cd /cache/build && mkdir deep && echo one >deep/file && ls -ld . | cut -d' ' -f3");
    await bringUp(backEnd, [second]);
    expect(run(2, "ls -A /cache/build")).toBe("");
    await endWell(first);
    await endWell(second);
    // The last one wins, though it began before the first one ended.
    expect(backEnd.caches()).toMatchObject([{ name: "build", lost: 1, hits: 0, by: "sliver2" }]);
    const third = sliver(3);
    await bringUp(backEnd, [third]);
    run(3, "echo three >/cache/build/mine");
    await endWell(third);
    await bringUp(backEnd, [sliver(4)]);
    expect((await startOf(4))?.from).toBeGreaterThan(0);
    expect(
      run(
        4,
        "cat /cache/build/mine; stat -c %U /cache/build/mine; rm /cache/build/mine; ls -A /cache/build",
      ).split("\n"),
    ).toEqual(["three", "ny-04", ""]);
    expect(backEnd.caches()).toMatchObject([{ lost: 1, hits: 2, by: "sliver3" }]);
  });
});
void [existsSync, readdirSync, join, inSliver];
