import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@nodeyard/driver";
import { DriverError, deadline } from "@nodeyard/driver";
import { type ImageInfo, judge } from "../images/inspect.ts";
import { ignoring, readable, sync } from "./files.ts";
import { type Account, run } from "./tools.ts";

const INSPECT_MS = 60_000;

/** Copies a file, holes and shared blocks kept, to where only we can change it. */
export async function copied(from: string, to: string, account: Account, signal: AbortSignal): Promise<void> {
  await run("cp", ["--reflink=auto", "--sparse=auto", "--no-preserve=all", "--", from, to], { signal });
  await readable(account, to);
}

/**
 * What an image is, asked as the user that is not trusted: the answer comes from a parser of a format that has had its holes.
 * Rejects with kind `configuration` for an image that reaches beyond its own file.
 */
export async function inspected(
  file: string,
  format: string,
  what: string,
  ctx: { readonly account: Account; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<ImageInfo> {
  const late = () => new DriverError("timeout", `qemu-img took longer than ${INSPECT_MS} ms to read ${what}`);
  const limit = deadline(ctx.clock, INSPECT_MS, late, ctx.signal);
  try {
    const words = ["info", "--output=json", "-f", format, file];
    // From within the folder: the way to it may be closed to the account.
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
  } finally {
    limit.cancel();
  }
}

/** Fills `draft` and gives it its name when it is whole and on the disk. There already: what is there stays. */
export async function placed(
  folder: string,
  draft: string,
  fill: (draft: string) => Promise<void>,
): Promise<void> {
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o711 });
  try {
    await fill(draft);
    await sync(draft);
    await ignoring("ENOTEMPTY", rename(draft, folder));
    await sync(dirname(folder));
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** What tells one content of a path from the next, without reading it. */
export async function stamp(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
}
