import { DriverError } from "@nodeyard/driver";

/** The bytes of a file on this host. */
export type OpenFile = (path: string) => AsyncIterable<Uint8Array>;

/** A file's bytes as they are sent; rejects when the file has another size than was promised. */
export async function* streamed(
  open: OpenFile,
  path: string,
  size: number,
  progress: (sent: number) => void,
): AsyncGenerator<Uint8Array, void, void> {
  let sent = 0;
  for await (const part of open(path)) {
    sent += part.byteLength;
    if (sent > size) break;
    yield part;
    progress(sent);
  }
  if (sent !== size)
    throw new DriverError("fatal", `${path} does not have the expected ${size} bytes; it was changed`);
}
