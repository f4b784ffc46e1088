import { paths } from "@nodeyard/model";
import { ensurePath } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { oneBuilder, until } from "./rig.ts";

const rig = oneBuilder();

const contender = `${"a".repeat(32)}__lock__0000000000`;

test("images without a configuration are deleted when nothing is left of them; flags, locks in use and unread records keep theirs", async () => {
  const cli = await rig.tree.connect();
  await ensurePath(cli, paths.imageBuildsLock("removed"));
  await ensurePath(cli, paths.imageBuildsLock("known"));
  await ensurePath(cli, paths.imagePause("held"));
  await ensurePath(cli, paths.imageRequest("asked"));
  await ensurePath(cli, `${paths.imageBuildsLock("busy")}/${contender}`);
  await ensurePath(cli, paths.imageBuilds("strange"));
  await cli.create(paths.imageBuild("strange", "0000000007"), Buffer.from("no record"));
  const { log } = await rig.start(rig.host.config("  - {name: known}"));
  const images = async () => [...(await cli.children(paths.images))].sort();
  await until(
    async () => !(await images()).includes("removed"),
    "it goes",
    () => log.lines,
  );
  expect(await images()).toEqual(["asked", "busy", "held", "known", "strange"]);
});
