import type { IncomingHttpHeaders } from "node:http";
import { constants, deflateRawSync } from "node:zlib";

/** Whether the client can unpack gzip. A weight of 0 means that it does not (RFC 9110 section 12.4.2). */
export function takesGzip(headers: IncomingHttpHeaders): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(headers["accept-encoding"] ?? ""));
}

/**
 * Begins a stream in gzip (RFC 1952 section 2.3: deflate, no name, no time, unknown system); any number of texts from `packed`
 * follow.
 */
export const GZIP_HEADER: Uint8Array = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/**
 * A text in gzip that refers to no text before it, so that the same bytes can go into the streams of many clients. A stream of events has
 * no end, and so no checksum: a client that is cut off unpacks what it has and connects again.
 */
export function packed(text: string): Uint8Array {
  return deflateRawSync(text, { level: constants.Z_BEST_SPEED, finishFlush: constants.Z_FULL_FLUSH });
}
