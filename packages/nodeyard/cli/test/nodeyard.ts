import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROGRAM } from "../../../../testing/program.ts";

const FLAGS = ["--disable-warning=ExperimentalWarning"];

/** What `request --wait --json` prints of a lease that was granted. */
export interface Granted {
  readonly lease: string;
  readonly request: string;
  readonly nodes: readonly { readonly id: string }[];
}

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
}

/** A real process of the program. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  out = "";
  err = "";
  readonly #waiting = new Set<() => void>();

  /** `through`: command words before it, of a program that starts another. */
  constructor(
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
    through: readonly string[] = [],
    program = PROGRAM,
  ) {
    const [command, ...rest] = [...through, process.execPath, ...FLAGS, program, ...words];
    this.child = spawn(command!, rest, {
      env: { ...process.env, NODEYARD_STATE: "", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child.stdout!.setEncoding("utf8").on("data", (text: string) => this.#grow("out", text));
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => this.#grow("err", text));
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code, signal) => {
        resolve({ code, signal, out: this.out, err: this.err });
        for (const look of this.#waiting) look();
      });
    });
  }

  /** Resolves when stderr contains `text`; rejects with all of it when the process ends first. */
  printed(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (this.err.includes(text)) resolve();
        else if (this.child.exitCode !== null || this.child.signalCode !== null)
          reject(
            new Error(
              `ended (${this.child.exitCode ?? this.child.signalCode}) without ${text}:\n${this.err}`,
            ),
          );
        else return;
        this.#waiting.delete(look);
      };
      this.#waiting.add(look);
      look();
    });
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }

  #grow(stream: "out" | "err", text: string): void {
    this[stream] += text;
    for (const look of this.#waiting) look();
  }
}

/** A state folder with a configuration, and the processes that use it; `close` ends and removes all of it. */
export class Site {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-"));
  readonly state = join(this.folder, "state");
  readonly config = join(this.folder, "nodepool.yaml");
  readonly #running: Running[] = [];

  constructor(config: string) {
    this.write(config);
  }

  write(config: string): void {
    writeFileSync(this.config, config);
  }

  start(...words: readonly string[]): Running {
    const running = new Running(["--state", this.state, ...words]);
    this.#running.push(running);
    return running;
  }

  /** `nodeyard up`, ready for clients. */
  async up(): Promise<Running> {
    const up = this.start("-c", this.config, "up");
    await up.printed("Nodeyard is up");
    return up;
  }

  /** Runs a command to its end. */
  run(...words: readonly string[]): Promise<Ended> {
    return this.start(...words).ended;
  }

  async json<T>(...words: readonly string[]): Promise<T> {
    const { code, out, err } = await this.run(...words, "--json");
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${err}`);
    return JSON.parse(out) as T;
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map((running) => running.kill("SIGKILL")));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A cloud that keeps its machines in a file, so that they outlive the process. */
export function fakeConfig(
  options: {
    readonly labels?: readonly string[];
    readonly extra?: string;
    readonly latency?: string;
    readonly journal?: string;
    readonly minReady?: number;
  } = {},
): string {
  const { labels = ["small", "large"], extra = "", latency = "{}", journal, minReady = 0 } = options;
  return `${extra}
labels:
${labels.map((label) => `  - {name: ${label}, min-ready: ${minReady}}\n`).join("")}
providers:
  - name: fake-cloud
    driver: fake
    cloud: memory
    fake:
      latency: ${latency}
${journal === undefined ? "" : `      journal: ${journal}\n`}    cloud-images:
      - name: debian
        username: zuul
    pools:
      - name: main
        max-servers: 5
        labels:
${labels.map((label) => `          - {name: ${label}, cloud-image: debian, min-ram: 1024}\n`).join("")}`;
}
