import type { Op } from "./contract.ts";
import { TooLarge } from "./errors.ts";

/**
 * ZooKeeper's default `jute.maxbuffer` (Administrator's Guide). A server closes the connection of a client that sends a longer
 * request, and every other call on that connection fails with it.
 */
export const MAX_REQUEST_BYTES = 0xfffff;
/**
 * Bytes of an operation besides its path and data: 48 for headers, lengths and access list, a share of the request's own 17, and
 * about 60 for a chroot, which precedes each path.
 */
const OVERHEAD = 128;

/** Size of a write in bytes: an upper bound of what is sent, the same for every store, so that all refuse the same writes. */
export function requestBytes(ops: readonly Op[]): number {
  let sum = 0;
  for (const op of ops) {
    const data = "data" in op && op.data !== undefined ? op.data.length : 0;
    sum += OVERHEAD + Buffer.byteLength(op.path) + data;
  }
  return sum;
}

/** Throws TooLarge for a write of more than `limit` bytes. */
export function checkSize(ops: readonly Op[], limit: number): void {
  const bytes = requestBytes(ops);
  if (bytes > limit) throw new TooLarge(describe(ops), bytes, limit);
}

/** The name of a write in messages, the same for every store. */
export function describe(ops: readonly Op[]): string {
  const first = ops[0];
  return ops.length === 1 && first !== undefined
    ? `${first.op} ${first.path}`
    : `a commit of ${ops.length} operations, ${first?.op} ${first?.path} first`;
}
