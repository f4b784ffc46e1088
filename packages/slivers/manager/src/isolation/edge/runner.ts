import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What is sent to `sliver-runner`. */
export type ToRunner =
  | {
      readonly id: number;
      readonly argv: readonly string[];
      readonly path: string;
      readonly input?: string | undefined;
      /** Its standard input stays open after `input`, until it is killed. */
      readonly isOpen: boolean;
      /** Its standard output is not read, and it has ended when its first process has. */
      readonly isQuiet: boolean;
    }
  | { readonly kill: number };

/** What `sliver-runner` says of a program; `end` last: its exit code, the signal that ended it, or why it could not be started. */
export type FromRunner = { readonly id: number } & (
  | { readonly out: string; readonly pid: number }
  | { readonly err: string }
  | {
      readonly end: number | string | null | { readonly code?: string | undefined; readonly message: string };
    }
);

type Listener = (message: FromRunner) => void;

const PROGRAM = fileURLToPath(new URL("../../bin/sliver-runner.ts", import.meta.url));
/** A small heap makes a small process. */
const FLAGS = ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=1"];

/** The process that starts programs for this one, from the first program on; another one after it has ended. */
let runner: { readonly child: ChildProcess; readonly listeners: Map<number, Listener> } | undefined;
let last = 0;

function ready(): NonNullable<typeof runner> {
  if (runner !== undefined) return runner;
  // In a session of its own: a Ctrl-C is for this process, which then ends what it runs in order.
  const child = spawn(process.execPath, [...FLAGS, PROGRAM], {
    env: {},
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    detached: true,
  });
  const listeners = new Map<number, Listener>();
  runner = { child, listeners };
  child.on("message", (message: FromRunner) => listeners.get(message.id)?.(message));
  const end = (why: string) => {
    if (runner?.child === child) runner = undefined;
    for (const [id, listener] of listeners) listener({ id, end: { message: why } });
  };
  child.once("error", ({ message }) => end(message));
  child.once("exit", (code, signal) => end(`the process that starts programs ended with ${signal ?? code}`));
  return runner;
}

/**
 * Starts a program. `listen` is called with each thing that is known of it, the last time with its end. Returns the function that kills it.
 */
export function start(
  order: Omit<Extract<ToRunner, { readonly id: number }>, "id">,
  listen: Listener,
): () => void {
  const { child, listeners } = ready();
  const id = ++last;
  // Also its end is waited for: it may be killed while a program runs.
  child.ref();
  child.channel?.ref();
  listeners.set(id, (message) => {
    if ("end" in message) {
      listeners.delete(id);
      // A process with nothing else to do may end.
      if (listeners.size === 0) {
        child.channel?.unref();
        child.unref();
      }
    }
    listen(message);
  });
  // One that could not be started, or has just ended, says so by its events.
  if (child.connected) child.send({ id, ...order } satisfies ToRunner, () => undefined);
  return () => void (child.connected && child.send({ kill: id } satisfies ToRunner, () => undefined));
}
