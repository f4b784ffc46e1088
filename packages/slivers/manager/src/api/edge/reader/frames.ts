import type { Readable, Writable } from "node:stream";

/** Length field before each frame, in bytes. */
const PREFIX = 4;
/** Longest frame of the parsing process, in bytes. */
export const MAX_FRAME = 4 * 1024 * 1024;

/** Sends a value over a pipe between two processes; false when it is longer than `longest` bytes. */
export function writeFrame(to: Writable, value: unknown, longest = Number.POSITIVE_INFINITY): boolean {
  const body = Buffer.from(JSON.stringify(value));
  if (body.length > longest) return false;
  const head = Buffer.alloc(PREFIX);
  head.writeUInt32BE(body.length);
  to.write(Buffer.concat([head, body]));
  return true;
}

/** Calls back with each value. On a frame longer than `longest` bytes, or a refused value, it calls `onWrong` and reads no more. */
export function readFrames(
  from: Readable,
  longest: number,
  onValue: (value: unknown) => void,
  onWrong: (error: unknown) => void,
): void {
  // Length of the frame whose body is still awaited.
  let wanted: number | undefined;
  const next = (): boolean => {
    if (wanted === undefined) {
      wanted = (from.read(PREFIX) as Buffer | null)?.readUInt32BE();
      if (wanted === undefined) return false;
      if (wanted > longest) throw new RangeError(`a frame of ${wanted} bytes`);
    }
    const body = from.read(wanted) as Buffer | null;
    if (body === null) return false;
    wanted = undefined;
    onValue(JSON.parse(body.toString("utf8")));
    return true;
  };
  const onReadable = () => {
    try {
      while (next());
    } catch (error) {
      from.off("readable", onReadable);
      onWrong(error);
    }
  };
  from.on("readable", onReadable);
}
