import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { patient } from "../patience.ts";
import { adopt } from "../zookeeper/children.ts";
import { freePort } from "../zookeeper/index.ts";
import { Names } from "./output.ts";
import { type Step, type Tutorial, tutorialOf } from "./steps.ts";

const BIN = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url));
/** For one step, on a machine that is busy with other tests. */
const PATIENCE_MS = patient(120_000);
const LOOK_MS = 100;
interface Terminal {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
  printed: string;
}

/** Follows a tutorial in a folder of its own, with a shell per terminal, as its reader does. */
export class Reader {
  readonly #tutorial: Tutorial;
  readonly #folder: string;
  readonly #names: Names;
  readonly #terminals = new Map<string, Terminal>();

  private constructor(tutorial: Tutorial, folder: string, names: Names) {
    this.#tutorial = tutorial;
    this.#folder = folder;
    this.#names = names;
  }

  /** `page`: its text. `folder`: empty. */
  static async of(page: string, folder: string): Promise<Reader> {
    const tutorial = tutorialOf(page);
    const ports = new Map<string, string>();
    for (const port of tutorial.ports) ports.set(port, String(await freePort()));
    return new Reader(tutorial, folder, new Names(ports));
  }

  /**
   * Every step, and every output that the page prints; rejects with the line of the page where they differ. `before` does for a step what
   * the page says in words, and `atEnd` looks at what runs in the terminals.
   */
  async fromTopToBottom(
    before: (step: Step) => Promise<void> = async () => {},
    atEnd: () => Promise<void> = async () => {},
  ): Promise<void> {
    for (const step of this.#tutorial.steps) {
      await before(step);
      if (step.terminal === undefined) await this.#follow(step);
      else await this.#open(step, step.terminal);
    }
    await atEnd();
    await this.close();
  }

  /** The last step first. A step that cannot be done says so in one line; rejects when one says more, or hangs. */
  async fromBottomToTop(): Promise<void> {
    for (const step of this.#tutorial.steps.toReversed()) {
      if (step.terminal !== undefined) {
        const { printed } = await this.#start(step, step.terminal, (text) => text.includes("\n"));
        expectOneLine(step, printed, this.#terminals.get(step.terminal)!.child.exitCode ?? 0);
      } else {
        const { printed, code } = await this.#run(step);
        expectOneLine(step, printed, code);
      }
    }
    await this.close();
  }

  /** Ends what runs in the terminals, as Ctrl-C does. */
  async close(): Promise<void> {
    for (const [name, { child, ended }] of [...this.#terminals].toReversed()) {
      signal(child, "SIGINT");
      const late = AbortSignal.timeout(PATIENCE_MS);
      late.addEventListener("abort", () => signal(child, "SIGKILL"));
      await ended;
      this.#terminals.delete(name);
      // What the shell has left behind.
      signal(child, "SIGKILL");
    }
  }

  async #follow(step: Step): Promise<void> {
    const limit = performance.now() + PATIENCE_MS;
    for (;;) {
      const { printed, code } = await this.#run(step);
      const right =
        code === step.code && (step.output === undefined || this.#names.learn(step.output, printed));
      if (right) return;
      if (!step.again || performance.now() > limit)
        throw differs(step, `${printed}${this.#screens()}`, `exit code ${code}`);
      await sleep(LOOK_MS);
    }
  }

  async #open(step: Step, terminal: string): Promise<void> {
    const wanted = `...\n${step.output ?? "..."}\n...`;
    const { printed, right } = await this.#start(step, terminal, (text) => this.#names.learn(wanted, text));
    if (!right) throw differs(step, printed, "it ended, or did not print this in time");
  }

  /** Starts a step in a terminal, whose last one has to end first; resolves when its output is right, and when it ends. */
  async #start(step: Step, name: string, right: (printed: string) => boolean) {
    await this.#terminals.get(name)?.ended;
    const child = this.#shell(`. ${this.#variables()}\n${this.#names.in(step.commands)}`);
    const terminal: Terminal = { child, ended: adopt(child), printed: "" };
    this.#terminals.set(name, terminal);
    listen(child, (text) => {
      terminal.printed += text;
    });
    const limit = performance.now() + PATIENCE_MS;
    let over = false;
    terminal.ended.then(() => {
      over = true;
    });
    while (!right(terminal.printed) && !over && performance.now() < limit) await sleep(LOOK_MS);
    return { printed: terminal.printed, right: right(terminal.printed) };
  }

  async #run(step: Step): Promise<{ readonly printed: string; readonly code: number }> {
    const variables = this.#variables();
    // What a step sets, later ones have: they are typed into one shell.
    const child = this.#shell(
      `set -ae; . ${variables}; trap 'code=$?; export -p >${variables}; exit $code' EXIT\n${this.#names.in(step.commands)}`,
    );
    const ended = adopt(child);
    let printed = "";
    listen(child, (text) => {
      printed += text;
    });
    const late = AbortSignal.timeout(PATIENCE_MS);
    late.addEventListener("abort", () => signal(child, "SIGKILL"));
    await Promise.all([ended, new Promise((resolve) => child.once("close", resolve))]);
    if (late.aborted) throw differs(step, printed, `no end after ${PATIENCE_MS} ms`);
    return { printed, code: child.exitCode ?? 1 };
  }

  /** What stands in the terminals: a step often fails because of what runs there. */
  #screens(): string {
    return [...this.#terminals]
      .map(([name, { printed }]) => `\nterminal ${name}:\n${printed.slice(-4000)}`)
      .join("");
  }

  /** The file with what earlier steps have set. */
  #variables(): string {
    const file = join(this.#folder, ".exported");
    appendFileSync(file, "");
    return file;
  }

  #shell(commands: string): ChildProcess {
    const path = [BIN, dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
    return spawn("/bin/bash", ["-c", commands], {
      cwd: this.#folder,
      env: {
        PATH: path,
        HOME: this.#folder,
        LANG: "C.UTF-8",
        // Until the page names a state folder: a Nodeyard of this machine is none of ours.
        NODEYARD_STATE: join(this.#folder, ".nobody"),
      },
      stdio: ["ignore", "pipe", "pipe"],
      // A process group of its own, so that what it starts ends with it.
      detached: true,
    });
  }
}

function listen(child: ChildProcess, take: (text: string) => void): void {
  // sshd ends its lines as a terminal wants them.
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => take(text.replaceAll("\r", "")));
}

function signal(child: ChildProcess, name: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, name);
  } catch {
    // It has ended.
  }
}

/** A step that fails may print only lines that begin with a program's name, one per complaint: no stack, no continuation. */
function expectOneLine(step: Step, printed: string, code: number): void {
  const lines = printed.split("\n").filter((line) => line !== "");
  const more = lines.filter(
    (line) => !/^(?:\d{4}-\S+ \S+ [A-Z]+ )?\S+: /.test(line) || /^(?:\w*Error|Traceback)/.test(line),
  );
  if (code !== 0 && more.length > 0) throw differs(step, printed, `says more than one line: ${more[0]}`);
}

function differs(step: Step, printed: string, why: string): Error {
  return new Error(
    `line ${step.line}: ${why}\n${step.commands}\nthe page:\n${step.output ?? "(nothing)"}\nprinted:\n${printed}`,
  );
}
