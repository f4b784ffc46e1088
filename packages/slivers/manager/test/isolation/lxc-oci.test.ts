import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ImageLab, ROOT } from "./machine/image-lab.ts";
import { blob, type TestLayer, writeIndex, writeLayout } from "./machine/layout.ts";
import { LOGIN, startRegistry, type TestRegistry } from "./machine/registry.ts";
import { whyNot } from "./machine/rig.ts";

const { signal } = new AbortController();
const BASE: TestLayer = { members: [...ROOT, { name: "./etc/low", content: "low" }], packed: "+gzip" };
const upper = (content: string): TestLayer => ({
  members: [{ name: "./etc/.wh.low" }, { name: "./etc/high", content }],
  packed: "+zstd",
});

describe.skipIf(whyNot() !== undefined)("images of OCI", () => {
  let lab: ImageLab;
  let registry: TestRegistry | undefined;
  beforeEach(async () => {
    // Where podman of root has run, this folder is root's alone; skopeo looks there for logins before anywhere else.
    mkdirSync("/run/containers", { recursive: true, mode: 0o700 });
    lab = new ImageLab();
    await lab.prepare();
  });
  afterEach(async () => {
    await registry?.stop();
    registry = undefined;
    await lab.stop();
  });
  const layoutOf = (name: string, layers: readonly TestLayer[]) => {
    const folder = join(lab.folder, name);
    rmSync(folder, { recursive: true, force: true });
    return { folder, digest: writeLayout(folder, layers).slice(7) };
  };
  /** So that what is larger than the rest is quickly made. */
  const fill = () => execFileSync("fallocate", ["-l", "150000000", join(lab.pool.folder, "filler")]);
  const etc = (path: string) => readdirSync(join(path, "etc"));

  test("a layout, and an archive of one, are one image with the digest of its manifest", async () => {
    const { folder, digest } = layoutOf("layout", [BASE, upper("1")]);
    const archive = join(lab.folder, "image.tar");
    execFileSync("tar", ["-cf", archive, "-C", folder, "."]);
    const images = lab.images({ folder: { oci: folder }, archive: { oci: archive, tag: "latest" } });
    const path = await images.ensure("folder", signal);
    expect(path.slice(-64)).toBe(digest);
    expect(etc(path)).toEqual(["high"]);
    expect(() => writeFileSync(join(path, "etc/high"), "")).toThrow(/EROFS/);
    expect(await images.ensure("archive", signal)).toBe(path);
    expect(await lab.images({}).ensure(`sha256:${digest}`, signal)).toBe(path);
    // The archive is not unpacked again by the next process to find out what it is.
    rmSync(join(lab.folder, "said"), { force: true });
    const again = lab.images({ archive: { oci: archive, tag: "latest" } });
    writeFileSync(join(lab.pool.folder, "images/archive.layout.new"), "in the way of unpacking");
    expect(await again.ensure("archive", signal)).toBe(path);
    expect(existsSync(join(lab.pool.folder, "images/archive.layout.new"))).toBe(true);
    expect(lab.said).toHaveLength(1);
    await again.retire(signal);
    expect(lab.inPool()).toEqual([digest]);
  });

  test("a damaged layer, a bomb, a link for a layer and a hostile archive are refused, and nothing is left", async () => {
    const { folder } = layoutOf("layout", [BASE]);
    const layer = readdirSync(join(folder, "blobs/sha256"))
      .map((name) => join(folder, "blobs/sha256", name))
      .find((path) =>
        readFileSync(path)
          .subarray(0, 2)
          .equals(Buffer.from([0x1f, 0x8b])),
      )!;
    const bytes = readFileSync(layer);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(layer, bytes);
    fill();
    const big = { name: "./big", content: "x".repeat(80_000_000) };
    const bomb = layoutOf("bomb", [BASE, { members: [big], packed: "+zstd" }]);
    const bare = layoutOf("bare", [upper("1")]);
    const odd = lab.archive([{ name: "index.json", type: "2", link: "/etc/hostname" }], "odd.tar");
    const up = lab.archive([{ name: "../../../../../index.json" }], "up.tar");
    const images = lab.images({
      ...{ damaged: { oci: folder }, bomb: { oci: bomb.folder }, bare: { oci: bare.folder } },
      ...{ odd: { oci: odd }, up: { oci: up }, none: { oci: "/none" } },
    });
    for (const [name, why] of Object.entries({
      damaged: "another sha256",
      bare: "has no /usr/sbin/sshd",
      odd: "index.json is not a file of at most",
      up: "is no OCI archive",
      none: "ENOENT",
      // It leaves no room for others for a moment.
      bomb: "cannot be unpacked",
    }))
      await expect(images.ensure(name, signal), name).rejects.toMatchObject({
        code: "sliver.image",
        message: expect.stringContaining(why),
      });
    await images.retire(signal);
    expect(lab.inPool()).toEqual([]);
    expect(statSync(bomb.folder).isDirectory()).toBe(true);
  });

  test("a registry without a login: its tags move, and it may be away", async () => {
    registry = await startRegistry(lab.folder, false);
    const first = layoutOf("layout", [BASE]);
    await registry.push(first.folder, "jobs/debian:1");
    const sources = { job: { registry: `${registry.host}/jobs/debian:1` } };
    const images = lab.images(sources);
    const path = await images.ensure("job", signal);
    expect(path.slice(-64)).toBe(first.digest);
    const second = layoutOf("layout", [BASE, upper("2")]);
    await registry.push(second.folder, "jobs/debian:1");
    // Asked again by the next process, or after some minutes.
    expect(await images.ensure("job", signal)).toBe(path);
    const next = await lab.images(sources).ensure("job", signal);
    expect([next.slice(-64), etc(next)]).toEqual([second.digest, ["high"]]);
    const pinned = { job: { registry: `${registry.host}/jobs/debian@sha256:${first.digest}` } };
    expect(await lab.images(pinned).ensure("job", signal)).toBe(path);
    expect(await lab.images(sources).ensure("job", signal)).toBe(next);
    await registry.stop();
    lab.said.length = 0;
    expect(await lab.images(sources).ensure("job", signal)).toBe(next);
    expect(lab.said).toEqual([expect.stringMatching(/^image job: the last one is used: 127.0.0.1.*refused/)]);
    const other = { job: { registry: `${registry.host}/jobs/other` } };
    await expect(lab.images(other).ensure("job", signal)).rejects.toMatchObject({ code: "sliver.command" });
    expect(lab.inPool()).toEqual([first.digest, second.digest].sort());
  });

  test("a registry with tokens, for anonymous users and for a login; what it may not have is refused", async () => {
    registry = await startRegistry(lab.folder, true);
    const { folder, digest } = layoutOf("layout", [BASE]);
    await registry.push(folder, "open/a:1");
    await registry.push(folder, "closed/b:1");
    const authFile = join(lab.folder, "auth.json");
    const auth = Buffer.from(`${LOGIN.user}:${LOGIN.password}`).toString("base64");
    writeFileSync(authFile, JSON.stringify({ auths: { [registry.host]: { auth } } }), { mode: 0o600 });
    const asked = registry.tokens.length;
    const images = lab.images({
      open: { registry: `${registry.host}/open/a:1` },
      denied: { registry: `${registry.host}/closed/b:1` },
      closed: { registry: `${registry.host}/closed/b:1`, authFile },
    });
    expect((await images.ensure("open", signal)).slice(-64)).toBe(digest);
    await expect(images.ensure("denied", signal)).rejects.toMatchObject({
      code: "sliver.command",
      message: expect.stringMatching(/denied|unauthorized/),
    });
    expect(new Set(registry.tokens.slice(asked))).toEqual(new Set([""]));
    expect((await images.ensure("closed", signal)).slice(-64)).toBe(digest);
    expect(registry.tokens.at(-1)).toBe(LOGIN.user);
  });

  test("a registry's image that is larger than the pool is refused while it is fetched", async () => {
    registry = await startRegistry(lab.folder, false);
    const folder = join(lab.folder, "large");
    const noise = execFileSync("head", ["-c", "80000000", "/dev/urandom"], { maxBuffer: 80_000_001 });
    const media = "application/vnd.oci.image";
    const layer = blob(folder, noise, `${media}.layer.v1.tar`);
    const config = blob(
      folder,
      { rootfs: { type: "layers", diff_ids: [layer.digest] } },
      `${media}.config.v1+json`,
    );
    const manifest = { schemaVersion: 2, config, layers: [layer] };
    writeIndex(folder, [blob(folder, manifest, `${media}.manifest.v1+json`)]);
    await registry.push(folder, "large:1");
    fill();
    await expect(
      lab.images({ large: { registry: `${registry.host}/large:1` } }).ensure("large", signal),
    ).rejects.toMatchObject({ message: expect.stringMatching(/quota|space/) });
    expect(lab.inPool()).toEqual([]);
  });
});
