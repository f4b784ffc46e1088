import { once } from "node:events";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { DriverError } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";

/** A line that is longer is of nobody that is meant to speak here, bytes. */
const LINE_MAX = 64 * 1024;
/** Of what a guest says about itself, characters. */
const SAID_MAX = 200;

/** What the peer says, line by line. Rejects with the reason when the connection is broken off. */
export async function* lines(socket: Socket): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of socket) {
    const all = (rest + (chunk as Buffer).toString("latin1")).split("\n");
    rest = all.pop() as string;
    if (rest.length > LINE_MAX) throw new DriverError("transient", `a line of more than ${LINE_MAX} bytes`);
    for (const line of all) yield line.trimEnd();
  }
}

/** Works with a path below the folder that fits into a socket's address, which has room for 107 bytes: through the folder, held open. */
export async function within<T>(folder: string, work: (short: string) => Promise<T>): Promise<T> {
  const at = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return await work(`/proc/self/fd/${at.fd}`);
  } finally {
    await at.close();
  }
}

/** Works with a connection to a socket in the folder, and ends it. Where nobody listens (any more), `work` fails when it reads. */
export function dialled<T>(
  folder: string,
  name: string,
  work: (socket: Socket) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  return within(folder, async (short) => {
    const socket = connect(`${short}/${name}`);
    socket.on("error", () => {});
    const onAbort = () => void socket.destroy(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      signal?.throwIfAborted();
      return await work(socket);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      socket.destroy();
      if (!socket.closed) await once(socket, "close");
    }
  });
}

/** Waits until the guest is parked. To be called before it can be: what it says to nobody is lost. */
export function parked(folder: string, signal: AbortSignal): Promise<void> {
  return dialled(folder, FILES.agent, (socket) => expected(socket, "parked 1"), signal);
}

/** Lets a guest go on that was restored and does not run yet: `run` has it run. Resolves when it has taken all it was told. */
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

async function expected(socket: Socket, wanted: string): Promise<void> {
  for await (const line of lines(socket)) {
    if (line === wanted) return;
    if (!line.startsWith("failed ")) continue;
    const plain = line.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, SAID_MAX);
    throw new DriverError("transient", `the guest cannot continue: ${plain}`);
  }
  throw new DriverError("transient", `the guest ended before it sent "${wanted}"`);
}
