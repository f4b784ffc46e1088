import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Running } from "../../../cli/test/nodeyard.ts";
import { ImageSite, until } from "./site.ts";

const MAKE =
  '[ ! -e "$0.fails" ]; while [ -e "$0.waits" ]; do sleep 0.1; done; echo "built $NODEYARD_BUILD" | tee "$DIB_IMAGE_FILENAME.raw"';

describe("images by the command line", () => {
  let site: ImageSite;
  let up: Running;
  beforeAll(async () => {
    site = new ImageSite(MAKE);
    up = await site.up();
    await up.printed("upload ready");
  });
  afterAll(() => site.close());

  /** A build that is ready is uploaded after that, and takes the oldest away: until then lists and exports change by themselves. */
  const settled = () =>
    until(async () => {
      const [builds, uploads] = [await site.builds(), await site.uploads()];
      const all = [...builds, ...uploads];
      return builds.length === 2 && uploads.length === 2 && all.every(({ state }) => state === "ready");
    }, "two builds, each uploaded");

  test("lists have the keys of the old web API", async () => {
    const [build] = await site.builds();
    expect(build).toEqual({
      id: expect.stringMatching(/^small-[0-9a-f]{32}$/),
      image: "small",
      builder: expect.any(String),
      formats: ["raw"],
      state: "ready",
      age: expect.any(Number),
      paused: false,
    });
    expect(await site.uploads()).toEqual([
      {
        id: build!.id.slice("small-".length),
        upload_id: "0000000001",
        provider: "cloud",
        image: "small",
        external_name: expect.stringMatching(/^small-\d+$/),
        external_id: expect.any(String),
        state: "ready",
        age: expect.any(Number),
      },
    ]);
    expect(await site.json("image-status")).toEqual([
      { image: "small", paused: false, build_request: null, build_request_age: null, canary: null },
    ]);
    expect((await site.run("image-list")).out).toContain("| Build ID ");
  });

  test("a build is asked for and waited for; a pause holds it, and hides nothing", async () => {
    const done = await site.json<object>("image-build", "small", "--wait");
    expect(done).toMatchObject({ image: "small", state: "ready" });
    for (const _ of [1, 2]) expect((await site.run("image-pause", "small")).code).toBe(0);
    expect((await site.run("image-build", "small")).err).toContain("small is paused");
    expect(await site.json("image-status")).toMatchObject([
      { image: "small", paused: true, build_request: "pending", build_request_age: expect.any(Number) },
    ]);
    expect((await site.run("dib-image-list")).out).toContain("paused (ready)");
    for (const _ of [1, 2]) expect((await site.run("image-unpause", "small")).code).toBe(0);
    await until(
      async () => (await site.json<{ build_request: unknown }[]>("image-status"))[0]!.build_request === null,
      "built",
    );
  });

  test("--wait ends at once for a paused image, and after --timeout", async () => {
    await site.run("image-pause", "small");
    const refused = await site.run("image-build", "small", "--wait");
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toMatch(/^nodeyard: diskimage small is paused, .*: nodeyard image-unpause small, or/);
    expect(await site.json("image-status")).toMatchObject([{ build_request: null }]);
    await site.run("image-unpause", "small");
    writeFileSync(join(site.folder, "make-image.waits"), "");
    const waiting = await site.run("image-build", "small", "--wait", "--timeout", "1s");
    rmSync(join(site.folder, "make-image.waits"));
    expect(waiting).toMatchObject({ code: 124, out: "" });
    expect(waiting.err).toContain(
      "nodeyard: no build of small ended within 1 s (--timeout); the request stands",
    );
    await until(
      async () => (await site.json<{ build_request: unknown }[]>("image-status"))[0]!.build_request === null,
      "built",
    );
  });

  test.each([
    [["image-build", "nothing"], 1, "has no diskimage nothing"],
    [["image-pause", "nothing"], 1, "has no diskimage nothing"],
    [["image-unpause", "nothing"], 1, "has no diskimage nothing"],
    [["dib-image-delete", "nodash"], 2, "is not IMAGE-BUILD"],
    [["dib-image-delete", "small-00"], 1, "there is no /nodepool/images/small/builds/00"],
    [["image-delete", "--provider", "cloud"], 2, "--image"],
    [["import-image-data", "/nonexistent"], 1, "cannot read"],
  ] as const)("%j ends with %i", async (words, code, err) => {
    const ended = await site.run(...words);
    expect([ended.code, ended.err]).toEqual([code, expect.stringContaining(err)]);
  });

  test("an export is complete and private; importing it twice changes nothing, and numbers continue above it", async () => {
    await settled();
    const file = join(site.folder, "export.json");
    writeFileSync(file, "x".repeat(100_000));
    expect((await site.run("export-image-data", file)).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const all = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
    expect(Object.keys(all).filter((path) => path.includes("/providers/"))).toHaveLength(
      (await site.uploads()).length,
    );
    const refused = await site.run("import-image-data", file);
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toMatch(/^nodeyard: a builder runs on \S+, and could delete what is imported/);
    const before = (await site.builds()).map(({ id }) => id);
    await up.kill("SIGTERM");
    const plain = join(site.folder, "without-builder.yaml");
    writeFileSync(plain, "labels: []\nproviders: []\n");
    const other = site.start("-c", plain, "up");
    await other.printed("Nodeyard is up");
    const records = Object.keys(all).length;
    for (const _ of [1, 2])
      expect(await site.json("import-image-data", file)).toEqual({ path: file, records });
    expect((await site.builds()).map(({ id }) => id)).toEqual(before);
    await other.kill("SIGTERM");
    up = await site.up();
  });

  test("an export that cannot be written leaves no half of it", async () => {
    const ended = await site.run("export-image-data", site.images);
    expect([ended.code, existsSync(`${site.images}.new`)]).toEqual([1, false]);
  });

  test("a deleted upload is made again under a new number; a deleted build goes with all it had", async () => {
    await settled();
    const [newest, older] = await site.builds();
    const at = (await site.uploads()).find(({ id }) => newest!.id.endsWith(id))!;
    const where = [
      "--provider",
      "cloud",
      "--image",
      "small",
      "--build-id",
      at.id,
      "--upload-id",
      at.upload_id,
    ];
    expect((await site.run("image-delete", ...where)).code).toBe(0);
    await until(async () => {
      const own = (await site.uploads()).filter(({ id }) => id === at.id);
      return (
        own.length === 1 && own[0]!.state === "ready" && Number(own[0]!.upload_id) > Number(at.upload_id)
      );
    }, "uploaded again");
    expect((await site.run("dib-image-delete", older!.id)).code).toBe(0);
    await until(async () => (await site.builds()).every(({ id }) => id !== older!.id), "the record goes");
    await until(() => site.files().every((name) => !name.startsWith(older!.id)), "the files go");
    expect((await site.uploads()).every(({ id }) => !older!.id.endsWith(id))).toBe(true);
  });

  test("images that no record knows are shown, for people to judge", async () => {
    const [known] = site.uploaded().filter((name) => name.endsWith(".json"));
    const facts = JSON.parse(readFileSync(join(site.cloud, known!), "utf8")) as { id: string; tag: object };
    const stray = (id: string, tag: object) =>
      writeFileSync(
        join(site.cloud, `${id}.json`),
        JSON.stringify({ ...facts, id, tag: { ...facts.tag, ...tag } }),
      );
    stray("lost", { uploadId: "0000000099" });
    stray("theirs", { installation: "another" });
    const rows = await site.json<{ id: string }[]>("-c", site.config, "alien-image-list");
    expect(rows.sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      {
        provider: "cloud",
        name: expect.stringMatching(/^small-/),
        id: "lost",
        upload_id: "0000000099",
        kind: "leaked",
      },
      expect.objectContaining({ id: "theirs", kind: "foreign" }),
    ]);
    const unknown = await site.run("-c", site.config, "alien-image-list", "nobody");
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining("no provider nobody")]);
  });

  test("a provider's records are erased only after a confirmation, and not while it is served; others stay", async () => {
    // Without ages, which grow.
    const records = async () => (await site.uploads()).map(({ external_id, state }) => [external_id, state]);
    const before = await records();
    const served = await site.run("erase", "cloud");
    expect([served.code, served.err]).toEqual([1, expect.stringContaining(" serves provider cloud")]);
    const asked = await site.run("erase", "elsewhere");
    expect([asked.code, asked.out, asked.err]).toEqual([1, "", expect.stringContaining("No data erased.")]);
    expect(await records()).toEqual(before);
    expect(await site.json("erase", "elsewhere", "--force")).toEqual({
      provider: "elsewhere",
      uploads: 0,
      nodes: [],
      kept: [],
    });
    expect(await records()).toEqual(before);
    const erased = await site.json<{ uploads: number }>("erase", "cloud", "--force");
    expect(erased.uploads).toBe(before.length);
    expect((await site.builds()).length).toBeGreaterThan(0);
  });

  test("waiting for a build that fails prints which log has the reason, and where it is", async () => {
    writeFileSync(join(site.folder, "make-image.fails"), "");
    const { code, err } = await site.run("image-build", "small", "--wait");
    rmSync(join(site.folder, "make-image.fails"));
    expect(code).toBe(1);
    const [, build, log] = /build (small-\w+) failed; (\S+) in build-log-dir of \S+ says why$/m.exec(err)!;
    expect(log).toBe(`${build}.log`);
    expect(readdirSync(site.logs)).toContain(log);
  });
});
