import { type ChildProcess, spawn } from "node:child_process";
import { chown, mkdir, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { type Clock, messageOf, sleep, type Timer } from "@nodeyard/runtime";
import type { Conversation } from "../http.ts";
import { CONNECTION_PREFIX } from "./child.ts";
import { MAX_FRAME, readFrames, writeFrame } from "./frames.ts";
import { messageSchema } from "./messages.ts";

/** Limit of writable memory (RLIMIT_DATA), in bytes. V8 reserves 550 MiB without using them. */
const DATA = 805_306_368;
/** Limit of V8's heap, in MiB. */
const HEAP = 64;
/** Milliseconds between two pings while there are connections (PULSE), and between two starts of the process (BETWEEN_STARTS). */
const PULSE = 5_000;
/** Pings without an answer until the process counts as hanging: on a crowded machine one answer may be late, here or there. */
const UNANSWERED = 2;
const BETWEEN_STARTS = 1_000;

/** Options of a reader. */
export interface ReaderOptions {
  /** Path of the program `sliver-reader`. */
  readonly program: string;
  /** Folder of its socket; no other process can enter it. */
  readonly folder: string;
  /** User and group of the process when this process is root. */
  readonly uid: number;
  readonly clock: Clock;
  readonly onFailure: (line: string) => void;
}

/** One life of the process, with the connections that it reads, by number. */
interface Running {
  readonly child: ChildProcess;
  readonly talks: Map<number, { readonly talk: Conversation; readonly end: () => void }>;
}

/**
 * A process without privileges that parses requests of untrusted callers, so that a bug in an HTTP, JSON or XML parser does not lead to
 * root (rule 11). The daemon relays bytes to it and receives typed messages. The daemon itself knows which caller a connection belongs to.
 * The process is killed and restarted when it does not answer for ten seconds. If slivers took it over, they could call for each other,
 * but not for root or the launcher, whose calls do not pass through it.
 */
export class Reader {
  readonly #options: ReaderOptions;
  /** Undefined while there is no process; the next connection starts one. */
  #running: Promise<Running> | undefined;
  /** When the process was started last, monotonic milliseconds. A process that dies at once is not started in a loop. */
  #started = Number.NEGATIVE_INFINITY;
  /** Number of the last connection. Never used twice, so that a late message cannot reach another caller. */
  #connections = 0;
  #closed = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Starts the process before the first connection. */
  start(): void {
    void this.#ready().catch(() => undefined);
  }

  /** Passes a connection to the process. */
  take(socket: Socket, talk: Conversation): void {
    this.#ready().then(
      (running) => this.#relay(running, socket, talk),
      () => socket.destroy(),
    );
  }

  /** Resolves when the process is gone; connections end with it. */
  async close(): Promise<void> {
    this.#closed = true;
    const running = await this.#running?.catch(() => undefined);
    if (running !== undefined && running.child.exitCode === null && running.child.signalCode === null) {
      const ended = new Promise((resolve) => running.child.once("exit", resolve));
      running.child.kill("SIGKILL");
      await ended;
    }
    await rm(this.#options.folder, { recursive: true, force: true });
  }

  /** The running process, or one that is being started. Rejects when it cannot be started; the next call tries again. */
  #ready(): Promise<Running> {
    this.#running ??= this.#start().catch((error) => {
      this.#running = undefined;
      if (!this.#closed) this.#options.onFailure(`calls of slivers cannot be read: ${messageOf(error)}`);
      throw error;
    });
    return this.#running;
  }

  async #start(): Promise<Running> {
    const { folder, uid, clock, onFailure } = this.#options;
    const early = this.#started + BETWEEN_STARTS - clock.monotonic();
    if (early > 0) await sleep(clock, early);
    this.#started = clock.monotonic();
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (process.getuid!() === 0) await chown(folder, uid, uid);
    const [program, ...args] = this.#command();
    const child = spawn(program, args, { env: {}, stdio: ["pipe", "pipe", "pipe"] });
    const talks: Running["talks"] = new Map();
    let said = "";
    child.stderr!.on("data", (text: Buffer) => {
      said = (said + text.toString("latin1")).slice(-1_000);
    });
    child.stdin!.on("error", () => undefined);
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      let pulse: Timer | undefined;
      let unanswered = 0;
      // Only while there are connections: an idle process costs nothing.
      const look = () => {
        if (unanswered === UNANSWERED) child.kill("SIGKILL");
        unanswered = talks.size === 0 ? 0 : unanswered + 1;
        if (unanswered > 0) writeFrame(child.stdin!, { ping: true });
        pulse = clock.setTimer(PULSE, look, { background: true });
      };
      child.once("exit", (code, signal) => {
        pulse?.cancel();
        this.#running = undefined;
        for (const { end } of talks.values()) end();
        const why = said.split("\n").find((text) => /Error|cannot|failed/.test(text)) ?? "no reason";
        const line = `the process that reads calls ended with ${signal ?? code}: ${why.trim()}`;
        if (pulse !== undefined && !this.#closed) onFailure(line);
        reject(new Error(line));
      });
      const onFrame = (value: unknown) => {
        const message = messageSchema.parse(value);
        if ("ready" in message) {
          pulse = clock.setTimer(PULSE, look, { background: true });
          return resolve({ child, talks });
        }
        if ("pong" in message) unanswered = 0;
        else this.#decide({ child, talks }, message);
      };
      readFrames(child.stdout!, MAX_FRAME, onFrame, () => child.kill("SIGKILL"));
    });
  }

  /** A message about a connection that has ended is ignored. */
  #decide({ child, talks }: Running, message: ConnectionMessage): void {
    const talk = talks.get(message.conn)?.talk;
    if ("malformed" in message) return talk?.malformed();
    if (talk === undefined) return;
    const { id } = message;
    const reply =
      "admit" in message
        ? talk.admit(message.admit).then((refusal) => ({ id, refusal }))
        : talk.answer(message.answer, message.authorization).then((response) => ({ id, response }));
    reply.then(
      (answer) => void writeFrame(child.stdin!, answer),
      () => talks.get(message.conn)?.end(),
    );
  }

  /** Bytes both ways. The first bytes say the connection's number, which later messages name; the socket itself stays here. */
  #relay({ talks }: Running, socket: Socket, talk: Conversation): void {
    if (socket.destroyed) return;
    const conn = ++this.#connections;
    const inner = connect({ path: join(this.#options.folder, "in.sock"), allowHalfOpen: true });
    const end = () => {
      talks.delete(conn);
      inner.destroy();
      socket.destroySoon();
    };
    talks.set(conn, { talk, end });
    inner.write(String(conn).padStart(CONNECTION_PREFIX, "0"));
    for (const one of [inner, socket]) one.on("error", end).on("close", end);
    socket.pipe(inner);
    inner.pipe(socket);
  }

  /**
   * The command that starts the process: without network and without new privileges. The program itself changes the user after it has
   * loaded its code, because the code may be readable by root only.
   */
  #command(): [string, ...string[]] {
    const { program, folder, uid } = this.#options;
    const flags = ["--disable-warning=ExperimentalWarning", `--max-old-space-size=${HEAP}`];
    const node = [process.execPath, ...flags, program, join(folder, "in.sock"), String(uid)] as const;
    if (process.getuid!() !== 0) return ["/usr/bin/prlimit", `--data=${DATA}`, "--core=0", ...node];
    return [
      ...(["/usr/bin/prlimit", `--data=${DATA}`, "--core=0", "--fsize=0"] as const),
      ...["/usr/bin/unshare", "--net", "--ipc"],
      ...["/usr/bin/setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+setuid,+setgid"],
      ...node,
    ];
  }
}

/** A message about one connection. */
type ConnectionMessage = Exclude<
  ReturnType<typeof messageSchema.parse>,
  { readonly ready: true } | { readonly pong: true }
>;
