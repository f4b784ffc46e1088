import { once } from "node:events";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { FILES } from "../machine/command-line.ts";

/** What QEMU says of its guest ("running", "inmigrate", "paused"); undefined: it cannot be asked (yet). QEMU's QMP. */
export async function status(folder: string): Promise<string | undefined> {
  // The whole path of a socket has room for 107 bytes: it is reached through the folder, held open.
  const at = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const socket = connect(`/proc/self/fd/${at.fd}/${FILES.monitor}`);
    socket.on("error", () => {});
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
    try {
      socket.write(`{"execute":"qmp_capabilities"}\n{"execute":"query-status"}\n`);
      for await (const line of createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })) {
        const answer = JSON.parse(line) as { return?: { status?: string } };
        if (answer.return?.status !== undefined) return answer.return.status;
      }
      return undefined;
    } catch (error) {
      // Not there yet, or gone while it was asked.
      if (
        ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(
          (error as NodeJS.ErrnoException).code ?? "",
        )
      )
        return undefined;
      throw error;
    } finally {
      socket.destroy();
      if (!socket.closed) await once(socket, "close");
    }
  } finally {
    await at.close();
  }
}

const ANSWER_MS = 5_000;
