import { type BuildCommand, type BuildOrder, MARK } from "./contract.ts";

/** The command of a build: the image's own program, or diskimage-builder. */
export function commandOf(order: BuildOrder): BuildCommand {
  const own = order.image.command;
  return own === null ? diskimageBuilder(order) : { argv: own, env: environment(order) };
}

/** Arguments as the old builder's (spec builder.md section 5), each its own word: paths may hold blanks. */
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
  return { argv, env: environment(order) };
}

/** The image's own variables override all but the mark. */
function environment({ image, build, base, formats, work, elementsDir }: BuildOrder): Record<string, string> {
  return {
    DIB_RELEASE: image.release,
    DIB_IMAGE_NAME: image.name,
    DIB_IMAGE_FILENAME: base,
    ...(elementsDir === null ? {} : { ELEMENTS_PATH: elementsDir }),
    NODEYARD_IMAGE_FORMATS: formats.join(" "),
    // Where diskimage-builder and most others put what is temporary.
    TMPDIR: work,
    ...image.env,
    [MARK]: build,
  };
}
