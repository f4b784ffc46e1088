import type { ImageSettings } from "@nodeyard/config";

/** One build, for a back end to turn into a command. */
export interface BuildOrder {
  readonly image: ImageSettings;
  readonly build: string;
  /** Path of the results without their suffix: `<images-dir>/<image>-<build>`. */
  readonly base: string;
  readonly formats: readonly string[];
  /** A folder of this build alone, for all that is temporary; removed when the build has ended. */
  readonly work: string;
  readonly elementsDir: string | null;
}

/** A build command. With exit code 0 it has written `<base>.<format>` for each format. */
export interface BuildCommand {
  readonly argv: readonly string[];
  /** Added to the builder's own environment; undefined: taken out of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Marks every process of a build, whatever it is called: children inherit it. */
export const MARK = "NODEYARD_BUILD";

/** The command of a build: the image's own program, or diskimage-builder. Pure: the order has all that it depends on. */
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

/** Variables of the build. The image's own variables override all but the mark, without which leftovers could not be found. */
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
