import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { lchown, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DriverError } from "@nodeyard/driver";
import { within } from "./socket.ts";
import type { Account } from "./tools.ts";

/** What arrived: its size, and its SHA-256 in hexadecimal digits. */
export interface Received {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Receives a stream from a QEMU of the account, over a socket in its folder, and stores it in a file that the account never owns, so that
 * no later machine of the account can change it. More than `most` bytes are an error.
 */
export async function received(
  folder: string,
  socket: string,
  file: string,
  most: number,
  send: () => Promise<void>,
  ctx: { readonly account: Account; readonly signal: AbortSignal },
): Promise<Received> {
  const { account, signal } = ctx;
  await rm(join(folder, socket), { force: true });
  return within(folder, async (short) => {
    const server = createServer();
    try {
      server.listen(`${short}/${socket}`);
      await once(server, "listening", { signal });
      // lchown, because the account may have replaced the socket by a link.
      if (account !== null) await lchown(join(folder, socket), account.uid, account.gid);
      // `send` makes QEMU connect. Its error ends the wait for a connection that would not come.
      const connection = once(server, "connection", { signal });
      const sent = send();
      sent.catch(() => {});
      const [peer] = (await Promise.race([connection, sent.then(() => connection)])) as [Socket];
      const [found] = await Promise.all([stored(peer, file, most, signal), sent]);
      return found;
    } finally {
      server.close();
      await rm(join(folder, socket), { force: true });
    }
  });
}

/** Writes the stream to a new file, and fsyncs it. Rejects when it is larger than `most`, which a broken QEMU could make it. */
async function stored(peer: Socket, file: string, most: number, signal: AbortSignal): Promise<Received> {
  const hash = createHash("sha256");
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, next) {
      hash.update(chunk);
      bytes += chunk.length;
      if (bytes > most)
        next(new DriverError("fatal", `QEMU writes a state of more than ${most} bytes for its guest`));
      else next(null, chunk);
    },
  });
  await pipeline(peer, counted, createWriteStream(file, { mode: 0o600, flags: "wx", flush: true }), {
    signal,
  });
  return { bytes, sha256: hash.digest("hex") };
}
