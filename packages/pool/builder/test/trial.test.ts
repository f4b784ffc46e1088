import { canaryPath, paths } from "@nodeyard/model";
import { listImages } from "@nodeyard/operations";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { chooseUpload } from "../../launcher/src/nodes/boot-image.ts";
import { tellCanary } from "../../launcher/src/nodes/canary-report.ts";
import { oneBuilder, until } from "./rig.ts";

const MAKE = 'echo image > "$DIB_IMAGE_FILENAME.raw"';

const site = oneBuilder();

/** An image with two builds, the newer on trial at a share of 50 %; `boot` is a launch of it as a launcher makes it. */
async function onTrial(launches: number) {
  const { host, tree } = site;
  const image = `{name: small, canary: {percent: 50, launches: ${launches}}, build-command: [${host.script("make", MAKE)}]}`;
  const { builder, log } = await site.start(host.config(`  - ${image}`, "{name: small}"));
  const { view } = builder;
  const uploads = () => [...view.images.uploads("small")].filter(({ record }) => record.state === "ready");
  const lines = () => log.lines;
  await until(() => uploads().length === 1, "the first upload", lines);
  expect(view.own.has(canaryPath("small"))).toBe(false);
  const [first] = uploads();
  await tree.create(paths.imageRequest("small"));
  await until(() => uploads().length === 2, "the second", lines);
  const second = uploads().find(({ build }) => build !== first!.build)!;
  const handles = { tree, view, log };
  const imageId = paths.imageUpload("small", second.build, "cloud", second.record.id);
  const boot = (ms: number | undefined) => tellCanary(handles, imageId, ms);
  const booted = () =>
    new Set(
      Array.from({ length: 20 }, (_, id) => {
        const lot = { nodeId: String(id).padStart(10, "0"), attempt: 1 };
        return chooseUpload(view, "small", "cloud", lot)?.build;
      }),
    );
  const status = async () =>
    (await listImages({ tree, clock: systemClock, random: systemRandom })).items[0]?.canary;
  return { first: first!.build, second: second.build, boot, booted, status, lines };
}

test("a new build that boots takes over after its launches, and the reason is kept", async () => {
  const { first, second, boot, booted, status, lines } = await onTrial(3);
  expect(booted()).toEqual(new Set([first, second]));
  for (const ms of [1_000, 1_100, 900]) await boot(ms);
  await until(async () => (await status())?.candidate === null, "a verdict", lines);
  expect(await status()).toMatchObject({
    rejected: [],
    last: { build: second, verdict: "promoted", why: expect.stringContaining("0 of 3 launches failed") },
  });
  await until(() => booted().size === 1, "launched alone", lines);
  expect(booted()).toEqual(new Set([second]));
});

test("one that does not boot is launched no more, and the proven one stays", async () => {
  const { first, second, boot, booted, status, lines } = await onTrial(50);
  // At once, as several launchers would.
  await Promise.all(Array.from({ length: 5 }, () => boot(undefined)));
  await until(async () => (await status())?.candidate === null, "a verdict", lines);
  expect(await status()).toMatchObject({ rejected: [second], last: { verdict: "rolled-back" } });
  await until(() => booted().size === 1, "launched alone", lines);
  expect(booted()).toEqual(new Set([first]));
  // Its successor has a trial, and takes nothing from the proven one.
  await site.tree.create(paths.imageRequest("small"));
  await until(async () => (await status())?.candidate != null, "another trial", lines);
  expect(await status()).toMatchObject({ rejected: [second] });
  expect(booted().has(first)).toBe(true);
});
