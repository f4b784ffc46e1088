import { afterEach, expect, test } from "vitest";
import { ImageSite, until } from "./site.ts";

interface Story {
  readonly state: string;
  readonly about: Readonly<Record<string, unknown>>;
  readonly waits_for: { readonly code: string; readonly facts: object; readonly source: string } | null;
  readonly image: {
    readonly builds: readonly {
      readonly state: string;
      readonly uploads: readonly { readonly provider: string; readonly state: string }[];
    }[];
    readonly builders: readonly {
      readonly work: string;
      readonly provider: string | null;
      readonly code: string;
      readonly facts: Readonly<Record<string, unknown>>;
      readonly next_try: string | null;
    }[];
  };
}

const MAKE = 'echo built > "$DIB_IMAGE_FILENAME.raw"';
let site: ImageSite | undefined;
afterEach(() => site?.close());

const explained = (own: ImageSite) => own.json<Story>("explain", "image", "small");

test("an image that is as new as it should be: builds, uploads, and when the next is due", async () => {
  site = new ImageSite(MAKE);
  const up = await site.up();
  await up.printed("upload ready");
  const story = await explained(site);
  expect(story).toMatchObject({
    state: "ready",
    waits_for: null,
    image: {
      builds: [{ state: "ready", uploads: [{ provider: "cloud", state: "ready" }] }],
      builders: [
        { work: "build", provider: null, code: "image.fresh", facts: { rebuild_age_seconds: 86_400 } },
        { work: "upload", provider: "cloud", code: "upload.done" },
      ],
    },
  });
  expect(story.image.builders[0]!.next_try).toMatch(/^20\d\d-/);
  const { out } = await site.run("explain", "image", "small");
  expect(out).toMatch(/^image small is ready since \S+ \(\d+ s\)\n/);
  expect(out).toMatch(
    /\nBuilds:\n {2}[0-9a-f]{32} {2}ready since .*, raw, by \S+\n {6}cloud 0000000001: ready since/,
  );
  expect(out).toMatch(/\n {2}\S+, upload to cloud: The provider has the newest build .* \(upload\.done\)\n/);
});

test("a pause holds a request, and both are explained; without a builder that is the reason", async () => {
  site = new ImageSite(MAKE);
  const up = await site.up();
  await up.printed("upload ready");
  await site.run("image-pause", "small");
  await site.run("image-build", "small");
  expect(await explained(site)).toMatchObject({
    state: "paused",
    about: { paused: true, requested_at: expect.any(Number) },
    waits_for: { code: "image.paused", facts: { by: "image-pause" }, source: "builder" },
  });
  await up.kill("SIGTERM");
});

test("a failing image says how often, since when and when it is tried again", async () => {
  site = new ImageSite("echo 'no mirror answers'; exit 3");
  const own = site;
  const up = await site.up();
  await up.printed("build failed");
  await until(async () => (await explained(own)).state === "failing", "the record says so", up);
  const story = await explained(site);
  expect(story.waits_for).toMatchObject({ code: "image.back-off", facts: { failures: 1 } });
  const end = {
    log: expect.stringMatching(/^\/.*\/small-\w+\.log$/),
    last_lines: ["no mirror answers", "Exit code: 3"],
  };
  expect(story.waits_for?.facts).toMatchObject(end);
  expect(story.image.builders).toMatchObject([
    { work: "build", code: "image.back-off", next_try: expect.stringMatching(/^20\d\d-/) },
    { work: "upload", code: "upload.no-build" },
  ]);
  const { out } = await site.run("explain", "image", "small");
  expect(out).toContain("It waits: Its last builds failed");
  expect(out).toContain("Next try: 20");
  expect(out).toMatch(
    /\n {2}log +\/.*\/small-\w+\.log\n {2}its last lines:\n {4}no mirror answers\n {4}Exit code: 3\n/,
  );
  const { out: diagnosis } = await site.run("doctor");
  expect(diagnosis).toMatch(/^WRONG {2}image .*small is failing: .*which ends: no mirror answers/m);
});

test("an unknown name, and a word that is no name", async () => {
  site = new ImageSite(MAKE);
  await site.up();
  const unknown = await site.run("explain", "image", "large");
  expect([unknown.code, unknown.out]).toEqual([1, ""]);
  expect(unknown.err).toMatch(
    /^nodeyard: the tree has no diskimage "large", and no builder that answered has it/,
  );
  expect((await site.run("explain", "image", "a/b")).code).toBe(2);
});
