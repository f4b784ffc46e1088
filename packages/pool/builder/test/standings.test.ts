import { type Driver, DriverError } from "@nodeyard/driver";
import { expect, test } from "vitest";
import type { Builder } from "../src/index.ts";
import { HostDisk, probeIsolation } from "../src/index.ts";
import { oneBuilder, until } from "./rig.ts";

const MAKE = 'echo image > "$DIB_IMAGE_FILENAME.raw"';

const site = oneBuilder();

const standing = ({ view }: Builder, id: string, code: string) =>
  until(
    () => {
      const one = view.standings.get(id);
      return one?.code === code && one;
    },
    `${id} is ${code}`,
    () => view.standings.list(),
  );

test("an image whose build fails: its last lines, where the log is, and when it is tried again, also after a restart", async () => {
  const { host } = site;
  const fails = host.script("fails", "echo 'E: no such package: gccc' >&2; exit 3");
  const config = host.config(`  - {name: bad, formats: [raw], build-command: [${fails}]}`);
  const { builder, log } = await site.start(config);
  const found = await standing(builder, "image/bad", "image.build-failed");
  expect(found).toMatchObject({ state: "failing", members: ["host"], since: expect.any(Number) });
  expect(found.cause).toMatch(
    /^exit code 3; its log is \/\S+\/bad-\w+\.log, which ends: E: no such package: gccc$/,
  );
  expect(found.nextTry).toBeGreaterThan(found.since!);
  const line = log.lines.find(({ text }) => text === "build failed");
  expect(line?.facts).toMatchObject({ last_lines: expect.arrayContaining(["E: no such package: gccc"]) });
  await builder.close();
  const again = await site.start(config);
  const recalled = await standing(again.builder, "image/bad", "image.build-failed");
  expect(recalled.cause).toMatch(/^its log \/\S+\.log ends: E: no such package: gccc$/);
});

test("a build that ends well without a file names the path where it was expected", async () => {
  const { host } = site;
  const empty = host.script("empty", "true");
  const { builder } = await site.start(
    host.config(`  - {name: small, formats: [raw], build-command: [${empty}]}`),
  );
  const { cause } = await standing(builder, "image/small", "image.build-failed");
  expect(cause).toMatch(/^the build command succeeded without \/\S+\/small-\w+\.raw$/);
});

test("an image without room for a build", async () => {
  class FullDisk extends HostDisk {
    override async free(): Promise<number> {
      return 0;
    }
  }
  const { host } = site;
  const make = host.script("make", MAKE);
  const config = host.config(`  - {name: small, formats: [raw], build-command: [${make}]}`);
  const { builder } = await site.start(config, new FullDisk(host.images, probeIsolation()));
  const { cause } = await standing(builder, "image/small", "image.put-off");
  expect(cause).toMatch(/^disk-full: 0 bytes free in \//);
});

test("an image whose upload is refused, by the words of the cloud, and good when one succeeds", async () => {
  const { host } = site;
  const make = host.script("make", MAKE);
  let refused = true;
  const around = (fake: Driver): Driver => ({
    ...fake,
    async open(...args) {
      const provider = await fake.open(...args);
      const images = provider.offers!.images!;
      const upload: typeof images.upload = (...order) => {
        if (refused) throw new DriverError("access", "403 Forbidden: image quota");
        return images.upload(...order);
      };
      return {
        ...provider,
        offers: { ...provider.offers, images: { ...images, upload } },
      } as typeof provider;
    },
  });
  const config = host.config(`  - {name: small, build-command: [${make}]}`, "{name: small}");
  const { builder } = await site.start(config, undefined, around);
  const found = await standing(builder, "image/small", "image.upload-failed");
  expect(found).toMatchObject({ state: "degraded", cause: "to cloud: 403 Forbidden: image quota" });
  expect(found.nextTry).toBeGreaterThan(found.since!);
  refused = false;
  // A newer build is uploaded at once.
  await site.tree.create("/nodepool/images/small/request-build");
  await standing(builder, "image/small", "image.ready");
});

test("a provider that the builder cannot open: the cause of a request that the driver repeats, at once", async () => {
  const { host } = site;
  const make = host.script("make", MAKE);
  const around = (fake: Driver): Driver => ({
    ...fake,
    open(_, { observe }) {
      observe?.({ operation: "image.GET", result: "none", ms: 1, error: new Error("connect ECONNREFUSED") });
      return new Promise(() => {});
    },
  });
  const config = host.config(`  - {name: small, build-command: [${make}]}`, "{name: small}");
  const starting = site.start(config, undefined, around);
  void starting.catch(() => {});
  await until(async () => {
    const [member] = await site.tree.children("/nodeyard/standings").catch(() => []);
    const record = member && (await site.tree.get(`/nodeyard/standings/${member}`));
    return record && Buffer.from(record.data).toString().includes("cloud: connect ECONNREFUSED");
  }, "it is reported while it is being opened");
});
