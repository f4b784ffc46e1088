import { type ImageLists, type LoadContext, type Reader, readImageLists } from "@nodeyard/driver";
import type { BootFiles, FileImage } from "../own.ts";

/** What a label gets from the image that it names. */
export interface ImageFacts {
  readonly file: FileImage | null;
  readonly boot: BootFiles | null;
}

/** Of a label whose image is not listed, which is an error or boots nothing. */
export const NO_IMAGE: ImageFacts = { file: null, boot: null };

export function readImages(provider: Reader, context: LoadContext): ImageLists<ImageFacts> {
  return readImageLists<ImageFacts>(provider, context, {
    cloudImage: (from) => {
      const file = readFile(from);
      return file === undefined ? undefined : { file, boot: readBoot(from) };
    },
    diskimage: (from) => ({ file: null, boot: readBoot(from) }),
  });
}

function readFile(from: Reader): FileImage | undefined {
  const path = absolute(from, "path", from.needed("path"));
  const format = from.needed("format");
  if (format !== undefined && format !== "qcow2" && format !== "raw") {
    from.error("format", `is ${format}; write qcow2 or raw, and convert anything else with qemu-img`);
    return undefined;
  }
  return path === undefined || format === undefined ? undefined : { path, format };
}

function readBoot(from: Reader): BootFiles | null {
  const kernel = absolute(from, "kernel", from.text("kernel", null) ?? undefined);
  const initrd = absolute(from, "initrd", from.text("initrd", null) ?? undefined);
  if (kernel === undefined) {
    if (initrd !== undefined) from.error("initrd", "is there without a kernel; add kernel, or leave it out");
    return null;
  }
  const words = from.text("kernel-arguments", "console=ttyS0 root=/dev/vda rw");
  return { kernel, initrd: initrd ?? null, arguments: words };
}

/** The launcher's working folder is nobody's business. */
function absolute(from: Reader, key: string, path: string | undefined): string | undefined {
  if (path === undefined || path.startsWith("/")) return path;
  from.error(key, `is ${path}, which is a relative path; write an absolute one`);
  return undefined;
}
