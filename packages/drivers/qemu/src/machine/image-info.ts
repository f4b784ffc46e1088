import { DriverError } from "@nodeyard/driver";

/** The facts in the output of `qemu-img info --output=json`. */
export interface ImageInfo {
  readonly format: string;
  /** Bytes. */
  readonly virtualSize: number;
}

/**
 * Checks the facts of an uploaded image. If its header named another file, QEMU would open that file of the host for the guest,
 * so an image with a backing file or a data file is refused (rule 11). Throws kind "configuration" with the remedy.
 */
export function judge(text: string, format: string, what: string): ImageInfo {
  const info = parse(text, what);
  const refuse = (why: string) => new DriverError("configuration", `image ${what} ${why}`);
  if (info.format !== format) throw refuse(`is ${String(info.format)}, not ${format}`);
  for (const key of ["backing-filename", "full-backing-filename", "backing-filename-format"])
    if (info[key] !== undefined)
      throw refuse(`has a backing file; make a standalone copy with "qemu-img convert -O ${format}"`);
  const data = record(record(info["format-specific"]).data);
  if (data["data-file"] !== undefined || data["data-file-raw"] === true)
    throw refuse(
      `keeps its data in another file; make a standalone copy with "qemu-img convert -O ${format}"`,
    );
  if (info.encrypted === true) throw refuse("is encrypted; QEMU could not get its key");
  const virtualSize = info["virtual-size"];
  if (typeof virtualSize !== "number" || !Number.isSafeInteger(virtualSize) || virtualSize <= 0)
    throw refuse("has no size");
  return { format, virtualSize };
}

function parse(text: string, what: string): Readonly<Record<string, unknown>> {
  try {
    return record(JSON.parse(text));
  } catch (error) {
    throw new DriverError("configuration", `image ${what} cannot be read by qemu-img`, { cause: error });
  }
}

/** The value as a mapping; empty for anything else, as the text comes from an image that may be hostile. */
function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
