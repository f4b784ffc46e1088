import type { Socket } from "node:net";
import { DriverError } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";
import { dialled, lines } from "./socket.ts";

/** Time in which QEMU answers on its monitor, milliseconds; a busy host delays that. */
const ANSWER_MS = 5_000;
/** Codes of a socket at which no QEMU listens. */
const NOBODY = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"];

/** A message of QEMU's QMP (QEMU manual, "QEMU Machine Protocol"): an answer, an error, or an event. */
interface Message {
  readonly return?: { readonly status?: string };
  readonly error?: { readonly desc?: string };
  readonly event?: string;
  readonly data?: { readonly status?: string };
}

/** The state of the guest by QEMU's QMP ("running", "inmigrate", "paused"); undefined while QEMU does not answer. */
export async function status(folder: string): Promise<string | undefined> {
  try {
    return await dialled(folder, FILES.monitor, async (socket) => {
      socket.setTimeout(ANSWER_MS, () => socket.destroy(new DriverError("timeout", "QEMU does not answer")));
      say(socket, "qmp_capabilities");
      say(socket, "query-status");
      // The answer to qmp_capabilities has no status and is passed over, as are events.
      for await (const { return: answer } of messages(socket))
        if (answer?.status !== undefined) return answer.status;
      return undefined;
    });
  } catch (error) {
    // The socket does not exist yet, or QEMU ended meanwhile.
    if (NOBODY.includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** Runs QMP commands in order. Rejects with the error of the first that fails ("transient"), or with the signal's reason. */
export function order(folder: string, commands: readonly Command[], signal: AbortSignal): Promise<void> {
  return monitored(folder, commands, async () => {}, signal);
}

/** Stops the guest and makes QEMU write its state to a socket in its folder. Resolves when the whole state is written. */
export function save(folder: string, socket: string, signal: AbortSignal): Promise<void> {
  const commands: readonly Command[] = [
    ["stop"],
    ["migrate-set-capabilities", { capabilities: [{ capability: "events", state: true }] }],
    // By default QEMU limits the rate of a migration, and so of writing the state.
    ["migrate-set-parameters", { "max-bandwidth": Number.MAX_SAFE_INTEGER }],
    ["migrate", { uri: `unix:${socket}` }],
  ];
  const done = async (rest: AsyncIterable<Message>) => {
    for await (const { event, data } of rest) {
      if (event !== "MIGRATION") continue;
      if (data?.status === "completed") return;
      if (data?.status === "failed") break;
    }
    throw new DriverError("transient", "QEMU could not save its guest");
  };
  return monitored(folder, commands, done, signal);
}

/** A QMP command with its arguments. */
type Command = readonly [name: string, words?: object];

/** Runs commands on a connection of its own, then `after` with the messages that follow. QEMU serves one connection at a time. */
function monitored<T>(
  folder: string,
  commands: readonly Command[],
  after: (rest: AsyncIterable<Message>) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const talk = async (socket: Socket) => {
    const all = messages(socket)[Symbol.asyncIterator]();
    for (const [name, words] of [["qmp_capabilities"] as Command, ...commands]) {
      say(socket, name, words);
      await answered(name, all);
    }
    return after({ [Symbol.asyncIterator]: () => all });
  };
  return dialled(folder, FILES.monitor, talk, signal);
}

/** Waits for the answer to a command. Events before it are passed over. */
async function answered(name: string, all: AsyncIterator<Message>): Promise<void> {
  for (let next = await all.next(); !next.done; next = await all.next()) {
    const { error, return: answer } = next.value;
    if (error !== undefined) throw new DriverError("transient", `QEMU refuses ${name}: ${error.desc}`);
    if (answer !== undefined) return;
  }
  throw new DriverError("transient", `QEMU ended before it answered ${name}`);
}

function say(socket: Socket, name: string, words?: object): void {
  socket.write(`${JSON.stringify({ execute: name, ...(words ? { arguments: words } : {}) })}\n`);
}

async function* messages(socket: Socket): AsyncGenerator<Message> {
  for await (const line of lines(socket)) yield JSON.parse(line) as Message;
}
