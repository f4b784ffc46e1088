import { DriverError } from "./errors.ts";
import type { UploadOrder } from "./offers.ts";

/** Opens a file on this host for reading. */
export type OpenFile = (path: string) => AsyncIterable<Uint8Array>;

/** A piece of a file. All pieces have the same length, except that the last may be shorter. */
export interface Piece {
  /** Number of the piece, from 0. */
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** Streams the bytes of an image and reports the progress. Rejects with `fatal` when the file's size is not the expected: it is no valid image. */
export async function* streamed(
  open: OpenFile,
  { file, size, progress }: Pick<UploadOrder, "file" | "size" | "progress">,
): AsyncGenerator<Uint8Array, void, void> {
  let sent = 0;
  for await (const part of open(file)) {
    sent += part.byteLength;
    if (sent > size) break;
    yield part;
    progress(sent);
  }
  if (sent !== size)
    throw new DriverError("fatal", `${file} does not have the expected ${size} bytes; it was changed`);
}

/** The same bytes in pieces of `length`, for clouds that accept pieces in any order. */
export async function* pieces(
  bytes: AsyncIterable<Uint8Array>,
  length: number,
): AsyncGenerator<Piece, void, void> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let index = 0;
  for await (const part of bytes) {
    let rest = part;
    while (held + rest.byteLength >= length) {
      parts.push(rest.subarray(0, length - held));
      rest = rest.subarray(length - held);
      yield { index: index++, bytes: joined(parts) };
      parts = [];
      held = 0;
    }
    if (rest.byteLength > 0) parts.push(rest);
    held += rest.byteLength;
  }
  if (held > 0) yield { index, bytes: joined(parts) };
}

/** How far sending may run ahead of the first missing item, in multiples of `most`. It bounds how much is sent again after a crash. */
const AHEAD = 4;

/**
 * Sends items, at most `most` at once. Yields how many items from the first on have arrived without a gap, which is what a checkpoint may
 * store. Sending continues while the consumer stores a checkpoint. The first error ends it, after all sends in progress have ended.
 */
export async function* inParallel<T>(
  items: AsyncIterable<T>,
  most: number,
  send: (item: T) => Promise<void>,
): AsyncGenerator<number, void, void> {
  const running = new Set<Promise<void>>();
  const arrived = new Set<number>();
  const failed: unknown[] = [];
  let begun = 0;
  let whole = 0;
  const counted = () => {
    while (arrived.delete(whole)) whole++;
    return whole;
  };
  const whenOneEnds = async () => {
    await Promise.race(running);
    if (failed.length > 0) throw failed[0];
    return counted();
  };
  try {
    for await (const item of items) {
      const number = begun++;
      const work = send(item)
        .then(
          () => void arrived.add(number),
          (error: unknown) => void failed.push(error),
        )
        .finally(() => running.delete(work));
      running.add(work);
      // Where sending is faster than reading nothing is waited for, and the consumer still learns what arrived.
      if (arrived.has(whole)) yield counted();
      while (running.size >= most || begun - whole >= AHEAD * most) yield await whenOneEnds();
    }
    while (running.size > 0) yield await whenOneEnds();
    if (failed.length > 0) throw failed[0];
  } finally {
    await Promise.all(running);
  }
}

/** How a file is sent of which only the pieces with data need to arrive, in any order. */
export interface Sparse<T = Piece> {
  readonly openFile: OpenFile;
  readonly order: Pick<UploadOrder, "file" | "size" | "progress">;
  /** Bytes of a piece. */
  readonly length: number;
  /** Pieces with data of which an earlier attempt knows that they have arrived. */
  readonly from: number;
  /** Pieces that are sent at once, and that lie between two checkpoints. Default: one. */
  readonly parallel?: number;
  readonly stretch?: number;
  /** What is sent of a piece; undefined: it has no data. Called in the order of the file, also for what is not sent again. Default: all of it. */
  readonly dataOf?: (piece: Piece) => T | undefined;
  readonly send: (data: T) => Promise<void>;
}

/** Yields for each checkpoint, and at the end, how many pieces with data have arrived without a gap. */
export async function* sentPieces<T = Piece>(how: Sparse<T>): AsyncGenerator<number, void, void> {
  const { openFile, order, length, from, parallel = 1, stretch = 1, send } = how;
  const { dataOf = (piece: Piece) => piece as T } = how;
  let count = 0;
  async function* unsent() {
    for await (const piece of pieces(streamed(openFile, order), length)) {
      const data = dataOf(piece);
      if (data !== undefined && count++ >= from) yield data;
    }
  }
  let saved = 0;
  for await (const arrived of inParallel(unsent(), parallel, send))
    if (arrived - saved >= stretch) {
      saved = arrived;
      yield from + arrived;
    }
  yield count;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}
