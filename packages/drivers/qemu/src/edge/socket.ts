import { once } from "node:events";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { DriverError } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";

/** Longest line, bytes. A longer one does not come from QEMU or the guest's script. */
const LINE_MAX = 64 * 1024;
/** How many characters of a guest's message appear in an error. */
const SAID_MAX = 200;

/** The peer's lines. Rejects with the reason when the connection breaks. */
export async function* lines(socket: Socket): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of socket) {
    const all = (rest + (chunk as Buffer).toString("latin1")).split("\n");
    rest = all.pop() as string;
    // The peer may be a hostile guest, which could fill the launcher's memory with one line.
    if (rest.length > LINE_MAX) throw new DriverError("transient", `a line of more than ${LINE_MAX} bytes`);
    for (const line of all) yield line.trimEnd();
  }
}

/** Gives access to a socket by a short path. A socket's address has room for 107 bytes, so the path goes through a descriptor of the folder. */
export async function within<T>(folder: string, work: (short: string) => Promise<T>): Promise<T> {
  const at = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return await work(`/proc/self/fd/${at.fd}`);
  } finally {
    await at.close();
  }
}

/** Connects to a socket in the folder and closes the connection after `work`. When nothing listens, reads in `work` fail. */
export function dialled<T>(
  folder: string,
  name: string,
  work: (socket: Socket) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  return within(folder, async (short) => {
    const socket = connect(`${short}/${name}`);
    // An error is seen by the reads in `work`. Without a listener it would end the process.
    socket.on("error", () => {});
    const onAbort = () => void socket.destroy(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      signal?.throwIfAborted();
      return await work(socket);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      socket.destroy();
      // QEMU serves one connection at a time, so the next one would wait.
      if (!socket.closed) await once(socket, "close");
    }
  });
}

/** Waits until the guest is parked. Call it before the guest can reach that point: a message without a listener is lost. */
export function parked(folder: string, signal: AbortSignal): Promise<void> {
  return dialled(folder, FILES.agent, (socket) => expected(socket, "parked 1"), signal);
}

/** Releases a restored guest: `run` lets it run. Resolves when the guest has applied all orders. */
export function released(
  folder: string,
  orders: string,
  run: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const tell = async (socket: Socket) => {
    socket.write(orders);
    await run();
    await expected(socket, "ready");
  };
  return dialled(folder, FILES.agent, tell, signal);
}

/** Waits for a line of the guest's script. Other lines are passed over; "failed REASON" rejects, shortened and without control characters. */
async function expected(socket: Socket, wanted: string): Promise<void> {
  for await (const line of lines(socket)) {
    if (line === wanted) return;
    if (!line.startsWith("failed ")) continue;
    const plain = line.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, SAID_MAX);
    throw new DriverError("transient", `the guest cannot continue: ${plain}`);
  }
  throw new DriverError("transient", `the guest ended before it sent "${wanted}"`);
}
