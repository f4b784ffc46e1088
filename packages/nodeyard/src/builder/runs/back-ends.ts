import { type BuildCommand, type BuildOrder, MARK } from "./contract.ts";

/** The command of a build: the image's own program, or diskimage-builder. */
export function commandOf(order: BuildOrder): BuildCommand {
  const own = order.image.command;
  if (own === null) return diskimageBuilder(order);
  return { argv: own, env: environment(order, { TMPDIR: order.work }) };
}

/** Arguments as the old builder's (docs/contract/builder.md, "The build command"), each its own word: paths may hold blanks. */
function diskimageBuilder(order: BuildOrder): BuildCommand {
  const { image, formats, base } = order;
  const argv = [
    ...image.dibCommand,
    "-x",
    "-t",
    formats.join(","),
    "--checksum",
    "--no-tmpfs",
    ...(formats.includes("qcow2") ? ["--qemu-img-options", "compat=0.10"] : []),
    "-o",
    base,
    ...image.elements,
  ];
  // Not TMPDIR: elements hand that on into the image, where no such folder is and packages fail to configure; and where it is
  // set TMP_DIR counts for nothing.
  return { argv, env: environment(order, { TMPDIR: undefined, TMP_DIR: order.work }) };
}

/** The image's own variables override all but the mark. */
function environment(
  { image, build, base, formats, elementsDir }: BuildOrder,
  temporary: BuildCommand["env"],
): BuildCommand["env"] {
  return {
    DIB_RELEASE: image.release,
    DIB_IMAGE_NAME: image.name,
    DIB_IMAGE_FILENAME: base,
    ...(elementsDir === null ? {} : { ELEMENTS_PATH: elementsDir }),
    NODEYARD_IMAGE_FORMATS: formats.join(" "),
    ...temporary,
    ...image.env,
    [MARK]: build,
  };
}
