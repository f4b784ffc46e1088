import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { patience } from "../patience.ts";
import { PROGRAM } from "../program.ts";

const START = ["--disable-warning=ExperimentalWarning", PROGRAM];
/** Neither a state folder nor a server of whoever runs the tests. */
const ENV = { ...process.env, NODEYARD_STATE: "", NODEYARD_URL: "" };
const KEPT = 40_000;

/** Runs a command to its end, and resolves with what it printed. Rejects with its errors when it fails. */
export async function run(...words: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [...START, ...words], { env: ENV })).stdout;
}

/** A process of the program that runs until it is ended. */
export class Daemon {
  /** The end of its log. */
  log = "";
  readonly #child: ChildProcess;

  /** Resolves when its log has `ready`; rejects with the log when it ends before. */
  static async start(words: readonly string[], ready: string): Promise<Daemon> {
    const daemon = new Daemon(words);
    await new Promise<void>((resolve, reject) => {
      daemon.#child.stderr!.on("data", () => daemon.log.includes(ready) && resolve());
      daemon.#child.once("close", () => reject(new Error(`ended without "${ready}":\n${daemon.log}`)));
    });
    return daemon;
  }

  private constructor(words: readonly string[]) {
    this.#child = spawn(process.execPath, [...START, ...words], {
      env: ENV,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.log = (this.log + text).slice(-KEPT);
    });
  }

  /** Resolves when it has ended. */
  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, "close");
    this.#child.kill(signal);
    await closed;
  }
}

/** Looks again and again until it is so: a state of the pool, for which there is no event here. */
export async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  for (let left = 900 * patience(); left > 0; left--) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
}
