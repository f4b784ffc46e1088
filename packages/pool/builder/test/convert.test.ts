import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { requireTools } from "../../../../testing/skipped.ts";
import { conversions } from "../src/core/convert.ts";
import { makeHost, openTree, startBuilder, until } from "./rig.ts";

test("a missing format is converted from raw, or else from qcow2, with its format named", () => {
  expect(conversions("/i/a", ["raw", "qcow2", "vhd"], ["raw"])).toEqual([
    ["qemu-img", "convert", "-p", "-f", "raw", "-O", "qcow2", "/i/a.raw", "/i/a.qcow2"],
    [
      ...["qemu-img", "convert", "-p", "-f", "raw", "-O", "vpc"],
      ...["-o", "subformat=fixed,force_size=on", "/i/a.raw", "/i/a.vhd"],
    ],
  ]);
  expect(conversions("/i/a", ["raw"], ["qcow2"])[0]).toContain("qcow2");
  expect(conversions("/i/a", ["raw"], ["raw"])).toEqual([]);
  expect(conversions("/i/a", ["tar"], ["raw"])).toEqual([]);
  expect(conversions("/i/a", ["raw"], ["tar"])).toEqual([]);
});

const noQemu = requireTools("tests of conversions", "qemu-img");

test.skipIf(noQemu)("a program that leaves qcow2 is enough for a provider that wants raw", async () => {
  const host = makeHost();
  const command = host.script("make", 'qemu-img create -q -f qcow2 "$DIB_IMAGE_FILENAME.qcow2" 1M');
  const config = host.config(
    `  - {name: small, formats: [vmdk], build-command: [${command}]}`,
    "{name: small}",
  );
  const tree = await openTree(host);
  const { builder, log } = await startBuilder(tree, host, config);
  try {
    await until(
      () => host.uploaded().length === 1,
      "an upload",
      () => log.lines,
    );
    const [build] = [...builder.view.images.builds("small").values()];
    expect(build?.formats).toEqual(["raw", "vmdk"]);
    const base = `small-${build!.id}`;
    expect(host.files()).toEqual([`${base}.build`, `${base}.raw`, `${base}.vmdk`]);
    const info = ["info", "--output=json", join(host.images, `${base}.vmdk`)];
    expect(JSON.parse(execFileSync("qemu-img", info, { encoding: "utf8" }))).toMatchObject({
      format: "vmdk",
      "virtual-size": 1024 * 1024,
    });
    expect(host.uploaded()[0]?.format).toBe("raw");
  } finally {
    await builder.close();
    await tree.close();
    host.remove();
  }
});
