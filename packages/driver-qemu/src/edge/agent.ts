import type { Socket } from "node:net";
import { DriverError } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";
import { dialled, lines } from "./socket.ts";

/** Of what a guest says about itself, characters. */
const SAID_MAX = 200;

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
    if (line.startsWith("failed ")) throw refused(line);
  }
  throw new DriverError("transient", `the guest ended before it sent "${wanted}"`);
}

function refused(said: string): DriverError {
  const plain = said.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, SAID_MAX);
  return new DriverError("transient", `the guest cannot continue: ${plain}`);
}
