import { expect, test } from "vitest";
import { type Builder, HostDisk, probeIsolation } from "../src/index.ts";
import { oneBuilder, until } from "./rig.ts";

const MAKE = 'echo image > "$DIB_IMAGE_FILENAME.raw"';

const site = oneBuilder();

const states = ({ view }: Builder, image: string) =>
  [...view.images.builds(image).values()].map(({ state }) => state);

test("an image that fails waits, and others are built meanwhile by the same worker", async () => {
  const { host } = site;
  const [fails, works] = [host.script("fails", "exit 1"), host.script("works", MAKE)];
  const images = [
    `  - {name: bad, formats: [raw], build-command: [${fails}]}`,
    `  - {name: good, formats: [raw], rebuild-age: 1, build-command: [${works}]}`,
  ];
  const started = await site.start(host.config(images.join("\n")));
  const built = () => started.log.lines.filter(({ text }) => text === "build ready").length;
  // Its successor is due each second; the failed one's only after a minute.
  await until(
    () => built() >= 3,
    "three builds of the good one",
    () => started.log.lines,
  );
  expect(states(started.builder, "bad")).toEqual(["failed"]);
});

class FullDisk extends HostDisk {
  room = 0;
  override async free(): Promise<number> {
    return this.room;
  }
}

test("no build begins on a disk without room: no record, no file, one line that says so", async () => {
  const { host } = site;
  const command = host.script("make", MAKE);
  const config = host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`);
  const disk = new FullDisk(host.images, probeIsolation());
  const started = await site.start(config, disk);
  const refusal = () => started.log.lines.find(({ text }) => text.startsWith("build not started:"));
  await until(
    () => refusal() !== undefined,
    "it is refused",
    () => started.log.lines,
  );
  expect(refusal()?.facts).toMatchObject({ image: "small", free: 0, needed: 2 ** 30 });
  expect([states(started.builder, "small"), host.files()]).toEqual([[], []]);
});
