import { encodeNode, newNode, paths } from "@nodeyard/model";
import { ensurePath } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { oneBuilder, until } from "./rig.ts";

const site = oneBuilder();

test("an upload that a node boots from stays, whatever its age, and goes as soon as the node has gone", async () => {
  const { host, tree } = site;
  const command = host.script("make", 'echo image > "$DIB_IMAGE_FILENAME.raw"');
  const config = host.config(`  - {name: small, build-command: [${command}]}`, "{name: small}");
  const started = await site.start(config);
  const { images } = started.builder.view;
  const lines = () => started.log.lines;
  const ready = () => [...images.uploads("small")].filter(({ record }) => record.state === "ready");
  await until(() => ready().length === 1, "the first upload", lines);
  const [first] = ready();
  const imageId = paths.imageUpload("small", first!.build, "cloud", first!.record.id);
  await ensurePath(tree, paths.nodes);
  const node = encodeNode(newNode({ state: "in-use", provider: "cloud", imageId }, 0));
  const { path } = await tree.create(`${paths.nodes}/`, node, { sequential: true });
  for (const count of [2, 3]) {
    await tree.create(paths.imageRequest("small"));
    await until(() => ready().length === count && !images.requested("small"), `upload ${count}`, lines);
  }
  // The next build is as old a reason as three are: a sweep has seen it by then.
  await tree.create(paths.imageRequest("small"));
  await until(
    () => ready().length === 3 && images.builds("small").size === 3,
    "the second goes instead",
    lines,
  );
  expect(ready().map(({ build }) => build)).toContain(first!.build);
  // No event of an image comes after this, and the next regular sweep is a minute away.
  await tree.delete(path);
  await until(() => !images.builds("small").has(first!.build), "the first goes", lines);
});
