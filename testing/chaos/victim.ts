import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PROGRAM } from "../program.ts";
import type { Effect, Moment } from "./inside/effects.ts";

const INSIDE = fileURLToPath(new URL("./inside/register.ts", import.meta.url));
const ERRORS_KEPT = 200_000;

export interface KillPoint {
  readonly effect: Effect;
  readonly moment: Moment;
  /** How many times the effect happens before the kill. */
  readonly count: number;
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

export interface VictimOptions {
  /** It kills itself there. */
  readonly kill?: KillPoint;
  /** File to which an embedded tree's changes are written. */
  readonly log?: string;
  /** The executable's source; default: that of this checkout. */
  readonly bin?: string;
  /** Whether the kill plan is loaded into it; default true. A path: another module instead. */
  readonly inside?: boolean | string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A real process of the program that will be killed. */
export class Victim {
  readonly ended: Promise<void>;
  /** The end of its log. */
  errors = "";
  readonly #child: ChildProcess;
  readonly #listeners = new Set<() => void>();

  /** `words`: the command line. */
  constructor(words: readonly string[], options: VictimOptions = {}) {
    const { kill, log, bin = PROGRAM, inside = true, env = {} } = options;
    const module = inside === true ? INSIDE : inside;
    this.#child = spawn(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        ...(module === false ? [] : ["--import", module]),
        bin,
        ...words,
      ],
      {
        env: {
          ...process.env,
          NODEYARD_STATE: "",
          NODEYARD_CHAOS_KILL: kill === undefined ? "" : `${kill.effect}:${kill.moment}:${kill.count}`,
          ...(log === undefined ? {} : { NODEYARD_CHAOS_LOG: log }),
          ...env,
        },
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    living.add(this.#child);
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.errors = (this.errors + text).slice(-ERRORS_KEPT);
      for (const look of this.#listeners) look();
    });
    this.ended = new Promise((resolve) => {
      this.#child.once("close", () => {
        living.delete(this.#child);
        resolve();
        for (const look of this.#listeners) look();
      });
    });
  }

  get dead(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** Resolves with whether its log has `text`; false when it ended without. */
  printed(text: string): Promise<boolean> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.errors.includes(text) && !this.dead) return;
        this.#listeners.delete(look);
        resolve(this.errors.includes(text));
      };
      this.#listeners.add(look);
      look();
    });
  }

  /** Freezes it: its connections stay open, and nothing is answered. */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  signal(name: NodeJS.Signals): Promise<void> {
    this.#child.kill(name);
    return this.ended;
  }
}
