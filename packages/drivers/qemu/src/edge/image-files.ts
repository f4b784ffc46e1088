import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, DriverError, deadline, ignoring, syncPath } from "@nodeyard/driver";
import { type ImageInfo, judge } from "../machine/image-info.ts";
import { readable } from "./files.ts";
import { type Account, run } from "./tools.ts";

/** Time limit of reading an image's header, milliseconds. */
const INSPECT_MS = 60_000;

/** Copies a file to a place that only the launcher can change, keeping holes and shared blocks. */
export async function copied(from: string, to: string, account: Account, signal: AbortSignal): Promise<void> {
  await run("cp", ["--reflink=auto", "--sparse=auto", "--no-preserve=all", "--", from, to], { signal });
  await readable(account, to);
}

/**
 * Inspects an image with qemu-img as the untrusted user, because parsers of image formats have had security holes. Rejects with kind
 * `configuration` for an image that refers to other files.
 */
export async function inspected(
  file: string,
  format: string,
  what: string,
  ctx: { readonly account: Account; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<ImageInfo> {
  const late = () => new DriverError("timeout", `qemu-img took longer than ${INSPECT_MS} ms to read ${what}`);
  using limit = deadline(ctx.clock, INSPECT_MS, late, ctx.signal);
  try {
    const words = ["info", "--output=json", "-f", format, file];
    // Started in the image's folder, because the account may not be able to enter its parents.
    return judge(
      await run("qemu-img", words, { signal: limit.signal, account: ctx.account, cwd: dirname(file) }),
      format,
      what,
    );
  } catch (error) {
    if (error instanceof DriverError && error.kind === "transient" && /Could not open/.test(error.message))
      throw new DriverError("configuration", `image ${what} is no ${format}: ${error.message}`, {
        cause: error,
      });
    throw error;
  }
}

/**
 * Fills the folder `draft`, makes it durable and renames it to `folder`. An existing `folder` is kept. So a folder is complete or
 * not there, and of two processes one wins. `fill` must sync the files that it writes.
 */
export async function placed(
  folder: string,
  draft: string,
  fill: (draft: string) => Promise<void>,
): Promise<void> {
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o711 });
  try {
    await fill(draft);
    await syncPath(draft);
    await ignoring("ENOTEMPTY", rename(draft, folder));
    await syncPath(dirname(folder));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** A text that changes when the content of a path changes, without reading the content. Rejects when the path does not exist. */
export async function stamp(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
}
