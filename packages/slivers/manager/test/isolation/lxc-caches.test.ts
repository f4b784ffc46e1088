import type { Rspec, SliverVolume } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { SliverConfig } from "../../src/core/plan.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf, inSliver, loginOf } from "./machine/slivers.ts";

const { signal } = new AbortController();
/** Also prints how long it took. */
const timed = (script: string) =>
  `began=$(date +%s%N); ${script}; echo "ms $((($(date +%s%N) - began) / 1000000))"`;
const MIB = 1024;
/** npm is larger than what slivers of tests have. */
const ROOMY = { memoryCap: 1_048_576, pids: 512 };
/** A registry of one package, in the sliver itself: nothing here needs a network. */
const REGISTRY = `
const fs = require("fs"), at = "http://127.0.0.1:4873";
const dep = { name: "dep", version: "1.0.0", dist: { tarball: at + "/dep.tgz" } };
const about = { name: "dep", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": dep } };
require("http").createServer((ask, answer) =>
  answer.end(ask.url.endsWith(".tgz") ? fs.readFileSync("dep/dep-1.0.0.tgz") : JSON.stringify(about)),
).listen(4873, "127.0.0.1");`;

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
  const sliver = (
    index: number,
    some: Partial<SliverVolume> = {},
    more: Partial<SliverConfig> = {},
    rspec: Partial<Rspec> = {},
  ) => ({
    ...configsOf(real.key, { [index]: rspec })[0]!,
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

  test("what a job leaves is what the next one finds, as its own; the last one wins, and what it replaced is counted", async () => {
    const [first, second] = [sliver(1), sliver(2)];
    await bringUp(backEnd, [first]);
    expect(await startOf(1)).toMatchObject({ why: "this machine has no cache build of lab/acme/small" });
    run(1, "cd /cache/build && mkdir deep && echo one >deep/file");
    await bringUp(backEnd, [second]);
    expect(run(2, "ls -A /cache/build")).toBe("");
    await endWell(first);
    await endWell(second);
    expect(backEnd.caches()).toMatchObject([{ name: "build", lost: 1, hits: 0, by: "sliver2" }]);
    const third = sliver(3);
    await bringUp(backEnd, [third]);
    run(3, "echo three >/cache/build/mine");
    await endWell(third);
    // Eight at once, each with one that is its own.
    const eight = [11, 12, 13, 14, 15, 16, 17, 18];
    await bringUp(
      backEnd,
      eight.map((index) => sliver(index)),
    );
    for (const index of eight)
      expect(
        run(index, `cd /cache/build; cat mine; stat -c %U mine; echo ${index} >mine; cat mine`).split("\n"),
      ).toEqual(["three", loginOf(index), `${index}`, ""]);
    expect((await startOf(11))?.from).toBeGreaterThan(0);
    expect(backEnd.caches()).toMatchObject([{ lost: 1, hits: 9, by: "sliver3" }]);
  });

  test("what an earlier job planted gives nothing to the next one, and the machine follows none of it", async () => {
    const planter = sliver(1, {}, { nesting: true });
    await bringUp(backEnd, [planter]);
    const root = (index: number, script: string) => inSliver(real, index, script, "root");
    const planted = await root(
      1,
      `cd /cache/build && cp /bin/bash sh && chmod 4755 sh && ln -s / up && ln -s /etc/shadow version
      mknod disk b 7 0; mkfifo pipe; ln -s ../../../slivers out; chmod 777 .
      mount -o remount,bind,suid,dev /cache/build && echo it set ids; ls`,
    );
    expect(planted).not.toContain("it set ids");
    expect(planted).toContain("pipe");
    // What is mounted there may be moved away; the copy is not found by a name inside.
    await root(1, "mv /cache /moved; ln -s /etc /cache");
    await endWell(planter);
    expect(backEnd.caches()).toHaveLength(1);
    await bringUp(backEnd, [sliver(2)]);
    expect(run(2, "cd /cache/build; ./sh -p -c 'id -u'")).toBe("1000\n");
    expect(run(2, "head -c 1 /cache/build/disk 2>&1 || true")).toMatch(/No such file|denied/);
    expect(
      run(2, "readlink /cache/build/version; grep /cache/build /proc/self/mountinfo").split(" ").join(","),
    ).toMatch(/nosuid,nodev/);
  });

  test("a copy has its size, what it shares with the cache included, and a full one is not kept", async () => {
    const fill = (index: number, mib: number) =>
      run(
        index,
        `cd /cache/build; head -c ${mib}M /dev/urandom >f${index} || true; sync -f .; du -sm . | cut -f1`,
      );
    const first = sliver(1);
    await bringUp(backEnd, [first]);
    fill(1, 40);
    await endWell(first);
    const second = sliver(2);
    await bringUp(backEnd, [second]);
    // It has 24 MiB left, although it owns nothing yet.
    expect(Number(fill(2, 60))).toBeLessThanOrEqual(64);
    await endWell(second);
    expect(backEnd.caches()).toMatchObject([{ by: "sliver1" }]);
    // A sliver whose memory was full, and one of which nobody said that it ended well.
    const [third, fourth] = [sliver(3), sliver(4)];
    await bringUp(backEnd, [third, fourth]);
    await inSliver(real, 3, "tail /dev/zero");
    await endWell(third);
    await backEnd.destroy(fourth, signal);
    expect(backEnd.caches()).toMatchObject([{ by: "sliver1" }]);
  });

  test("a compiler's cache and packages of a registry are there for the second job, and for eight at once", async () => {
    const settings = "set -e; cd; export CCACHE_DIR=/cache/build/ccache npm_config_cache=/cache/build/npm";
    const source =
      'for i in $(seq 1500); do echo "int f$i(int x) { for (int n = x; n < 9; n++) x = x * n + $i; return x; }"; done >a.c';
    const compile = `${source}; ${timed("ccache gcc -O2 -c a.c -o a.o")}; ccache --print-stats`;
    const install = "npm install --silent --no-audit --registry http://127.0.0.1:4873 dep && ls node_modules";
    const first = sliver(1, {}, {}, ROOMY);
    await bringUp(backEnd, [first]);
    const begun = run(1, `${settings}; ${compile}`);
    expect(begun).toMatch(/^direct_cache_hit\t0$/m);
    const registry = `mkdir dep app; printf '{"name":"dep","version":"1.0.0"}' >dep/package.json; (cd dep; npm pack --silent)
      cat >registry.cjs <<'END'${REGISTRY}
END
      node registry.cjs >/dev/null 2>&1 & sleep 2; cd app`;
    expect(run(1, `${settings}; ${registry}; ${install}; kill %1`)).toMatch(/^dep$/m);
    await endWell(first);
    await bringUp(backEnd, [sliver(2, {}, {}, ROOMY)]);
    const second = run(2, `${settings}; ${compile}`);
    expect(second).toMatch(/^direct_cache_hit\t1$/m);
    const offline = install.replace("install", "install --offline");
    expect(run(2, `${settings}; ${offline}`)).toBe("dep\n");
    const eight = [11, 12, 13, 14, 15, 16, 17, 18];
    await bringUp(
      backEnd,
      eight.map((index) => sliver(index, {}, {}, ROOMY)),
    );
    const work = `cat >job <<'END'\n${settings}; ${compile}; ${offline}; echo all\nEND\nnohup sh job >out 2>&1 &`;
    for (const index of eight) run(index, work);
    for (const index of eight) {
      const said = () => run(index, "cat out");
      await expect.poll(said, { timeout: patient(120_000) }).toMatch(/^all$/m);
      expect(said()).toMatch(/^direct_cache_hit\t1$.*^dep$/ms);
    }
    const [ms, msAgain, ...ofEight] = [begun, second, ...eight.map((index) => run(index, "cat out"))].map(
      (text) => Number(/^ms (\d+)$/m.exec(text)?.[1]),
    );
    console.log(
      `ccache: ${ms} ms, with the cache ${msAgain} ms, eight at once ${Math.max(...ofEight)} ms at most`,
    );
  });
});
