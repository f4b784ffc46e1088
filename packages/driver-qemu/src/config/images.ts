import { type Connection, type LoadContext, type Reader, readConnection } from "@nodeyard/driver";
import type { BootFiles, FileImage } from "../own.ts";

/** What a label gets from the image that it names. */
export interface ImageFacts {
  readonly connection: Connection;
  readonly file: FileImage | null;
  readonly boot: BootFiles | null;
}

/** The images that a provider lists, by name. */
export interface ImageLists {
  readonly cloudImages: ReadonlyMap<string, ImageFacts>;
  readonly diskimages: ReadonlyMap<string, ImageFacts>;
}

export function readImages(provider: Reader, context: LoadContext): ImageLists {
  return { cloudImages: readCloudImages(provider), diskimages: readDiskimages(provider, context) };
}

function readCloudImages(provider: Reader): ReadonlyMap<string, ImageFacts> {
  const images = new Map<string, ImageFacts>();
  for (const from of provider.mappings("cloud-images")) {
    const name = from.needed("name");
    const path = absolute(from, "path", from.needed("path"));
    const format = from.needed("format");
    if (format !== undefined && format !== "qcow2" && format !== "raw")
      from.error("format", `is ${format}; write qcow2 or raw, and convert anything else with qemu-img`);
    if (name === undefined || path === undefined || (format !== "qcow2" && format !== "raw")) continue;
    const connection = {
      username: from.text("username", null),
      pythonPath: from.text("python-path", "auto"),
      shellType: from.text("shell-type", null),
      ...readConnection(from),
    };
    images.set(name, { connection, file: { path, format }, boot: readBoot(from) });
  }
  return images;
}

function readDiskimages(provider: Reader, context: LoadContext): ReadonlyMap<string, ImageFacts> {
  const images = new Map<string, ImageFacts>();
  for (const from of provider.mappings("diskimages")) {
    const name = from.needed("name");
    if (name === undefined) continue;
    const top = context.diskimages.get(name);
    if (top === undefined) {
      from.error(
        "name",
        `names diskimage ${name}, which is not among the top-level diskimages, or is abstract`,
      );
      continue;
    }
    images.set(name, {
      connection: { ...top, ...readConnection(from) },
      file: null,
      boot: readBoot(from),
    });
  }
  return images;
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
  from.error(key, `is ${path}, which depends on who reads it; write an absolute path`);
  return undefined;
}
