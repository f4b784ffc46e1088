import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { patient } from "../patience.ts";
import { adopt } from "../zookeeper/children.ts";
import type { Certificates } from "../zookeeper/index.ts";

const ANSWER_MS = patient(60_000);

/** A ProviderNode as Zuul reads it. */
export interface PlayedNode {
  /** When its record was made and last written, milliseconds since the epoch by ZooKeeper's clock. */
  readonly made: number;
  readonly written: number;
  readonly state: string;
  readonly request: string | null;
  readonly interface_ip: string | null;
  readonly comment: string | null;
  readonly host_keys: readonly string[];
}

/** Zuul's launcher, scheduler and executor, played by Zuul's own classes (player.py). */
export class ZuulPlayer {
  readonly #child;
  readonly #lines;
  #errors = "";

  constructor(hosts: string, tls: Certificates) {
    const venv = execFileSync(join(import.meta.dirname, "install.sh"), { encoding: "utf8" }).trim();
    const script = join(import.meta.dirname, "player.py");
    this.#child = spawn(join(venv, "bin/python"), [script, hosts, tls.ca, tls.cert, tls.key], {
      stdio: "pipe",
    });
    void adopt(this.#child);
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-10_000);
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Resolves when it has a session. */
  async ready(): Promise<void> {
    await this.#hear();
  }

  async call<T>(name: string, ...args: readonly unknown[]): Promise<T> {
    this.#child.stdin.write(`${JSON.stringify([name, ...args])}\n`);
    const { answer, error } = (await this.#hear()) as { answer: T; error?: string };
    if (error !== undefined) throw new Error(`${name}: ${error}`);
    return answer;
  }

  node(uuid: string): Promise<PlayedNode | null> {
    return this.call("node", uuid);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async #hear(): Promise<unknown> {
    const late = AbortSignal.timeout(ANSWER_MS);
    const over = new Promise<never>((_, reject) => late.addEventListener("abort", () => reject(late.reason)));
    const line = await Promise.race([this.#lines.next(), over]);
    if (line.done) throw new Error(`the player has ended:\n${this.#errors}`);
    return JSON.parse(line.value) as unknown;
  }
}
