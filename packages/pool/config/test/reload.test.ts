import { mkdtemp, rename, rm, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Config, type ConfigDiff, ConfigWatch, diffConfig, type Finding } from "../src/index.ts";
import { drivers, loaded } from "./support.ts";

const fake = (name: string, more = "") => `  - {name: fake-${name}, cloud: c, ${more}}\n`;

describe("the difference of two configurations", () => {
  const base = `labels: [{name: a, min-ready: 1}]\nproviders:\n${fake("1")}${fake("2")}`;
  const diff = (text: string) => diffConfig(loaded(base), loaded(text));

  it("21: a label's stock changes no provider", () => {
    expect(diff(base.replace("min-ready: 1", "min-ready: 2"))).toMatchObject({
      labelsChanged: ["a"],
      providersChanged: [],
      any: true,
    });
  });

  it("23: names only the provider that differs", () => {
    const changed = diff(base.replace("fake-2, cloud: c", "fake-2, cloud: c, launch-retries: 5"));
    expect(changed).toMatchObject({ providersChanged: ["fake-2"], providersAdded: [], providersRemoved: [] });
  });

  it("24: sees nothing in the order of keys, comments and defaults written out", () => {
    const text = `# new\nproviders:\n  - {cloud: c, launch-retries: 3, name: fake-1}\n${fake("2")}labels: [{min-ready: 1, name: a}]`;
    expect(diff(text).any).toBe(false);
  });

  it("26: names what came and went", () => {
    expect(diff(`labels: [{name: b}]\nproviders:\n${fake("1")}${fake("3")}`)).toMatchObject({
      providersAdded: ["fake-3"],
      providersRemoved: ["fake-2"],
      labelsChanged: ["a", "b"],
    });
  });

  it("tells new servers from what needs a restart", () => {
    const zk = (host: string, chroot: string) =>
      loaded(`zookeeper-servers: [{host: ${host}, chroot: ${chroot}}]`);
    expect(diffConfig(zk("x", "/a"), zk("y", "/a"))).toMatchObject({
      zookeeperServersChanged: true,
      zookeeperNeedsRestart: false,
    });
    expect(diffConfig(zk("x", "/a"), zk("x", "/b"))).toMatchObject({
      zookeeperServersChanged: false,
      zookeeperNeedsRestart: true,
    });
  });
});

describe("the watch", () => {
  let folder: string;
  let path: string;
  let watch: ConfigWatch;
  const changes: { config: Config; diff: ConfigDiff }[] = [];
  const errors: (readonly Finding[])[] = [];
  const found: (readonly Finding[])[] = [];
  const reads: { usable: boolean; modified: number | undefined }[] = [];
  const old = "labels: [{name: a}]";

  beforeEach(async () => {
    reads.length = 0;
    changes.length = 0;
    errors.length = 0;
    found.length = 0;
    folder = await mkdtemp(join(tmpdir(), "nodeyard-config-"));
    path = join(folder, "nodepool.yaml");
    await writeFile(path, old);
    watch = new ConfigWatch({
      path,
      env: {},
      drivers,
      clock: new VirtualClock(),
      config: loaded(old),
      onRead: (usable, modified) => reads.push({ usable, modified }),
      onChange: (config, diff) => changes.push({ config, diff }),
      onSame: (findings) => found.push(findings),
      onError: (findings) => errors.push(findings),
    });
  });

  afterEach(async () => {
    watch.close();
    await rm(folder, { recursive: true });
  });

  it("takes up a new file, also one moved over the old", async () => {
    await watch.check();
    expect(changes).toEqual([]);
    await writeFile(join(folder, "next"), "labels: [{name: b}]");
    await rename(join(folder, "next"), path);
    await watch.check();
    expect(changes.map(({ diff }) => diff.labelsChanged)).toEqual([["a", "b"]]);
    expect([...watch.config.labels.keys()]).toEqual(["b"]);
  });

  it("22: keeps the old one while the file is broken, says so once, and recovers", async () => {
    await writeFile(path, "labels: [");
    await watch.check();
    await watch.check();
    expect(errors).toHaveLength(1);
    expect(errors[0]?.[0]).toMatchObject({ severity: "error", source: "syntax", file: path });
    expect([...watch.config.labels.keys()]).toEqual(["a"]);
    await writeFile(path, "labels: [{name: mended}]");
    await watch.check();
    expect([...watch.config.labels.keys()]).toEqual(["mended"]);
    expect(reads.map(({ usable }) => usable)).toEqual([false, true]);
    // Two sums of the same nanoseconds may differ in the last bit.
    expect(reads[1]?.modified).toBeCloseTo((await stat(path)).mtimeMs, 2);
  });

  it("tells once of what is misspelt, though nothing differs by it", async () => {
    await watch.check();
    expect(found).toEqual([]);
    await writeFile(path, `${old}\nunknown-key: 1\n`);
    for (let look = 0; look < 2; look++) await watch.check();
    expect(changes).toEqual([]);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject([{ path: "unknown-key", message: "is not a key here" }]);
  });

  it("does nothing for a touch, and survives a file that is gone", async () => {
    await watch.check();
    await utimes(path, 1, 1);
    await watch.check();
    expect(changes).toEqual([]);
    await unlink(path);
    await watch.check();
    expect(errors[0]?.[0]?.message).toContain("cannot be read");
    await writeFile(path, "labels: [{name: back}]");
    await watch.check();
    expect([...watch.config.labels.keys()]).toEqual(["back"]);
  });
});
