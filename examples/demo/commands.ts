import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { NodeyardError } from "@nodeyard/runtime";
import { type Io, main } from "../../packages/nodeyard/src/cli/index.ts";
import type { Machine } from "../../packages/nodeyard/src/machine/index.ts";

/** The fields of `nodeyard request --json` that the demo uses. */
export interface Granted {
  readonly lease: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly interface_ip: string;
    readonly connection_port: number;
    readonly username: string;
    readonly host_keys: readonly string[];
  }[];
}

/** Runs the command line as a person would, and shows the command. Rejects if it fails. */
export class Commands {
  readonly #machine: Machine;
  readonly #stateFolder: string;
  readonly #say: (text: string) => void;
  /** Ids of the leases of this demo. */
  readonly #leases: string;

  constructor(machine: Machine, stateFolder: string, say: (text: string) => void) {
    this.#machine = machine;
    this.#stateFolder = stateFolder;
    this.#say = say;
    this.#leases = join(stateFolder, "demo-leases");
  }

  async request(labels: readonly string[]): Promise<Granted> {
    const granted = JSON.parse(await this.#run(["request", ...labels, "--wait", "--json"])) as Granted;
    appendFileSync(this.#leases, `${granted.lease}\n`);
    return granted;
  }

  /** A killed demo still has its leases, as it should; the next one needs the hosts. */
  async releaseLeftovers(): Promise<void> {
    const ids = existsSync(this.#leases) ? readFileSync(this.#leases, "utf8").split("\n") : [];
    for (const id of ids.filter((line) => line !== "")) await this.release([id]).catch(() => {});
    rmSync(this.#leases, { force: true });
  }

  async release(leases: readonly string[]): Promise<void> {
    await this.#run(["release", ...leases]);
  }

  async show(...words: readonly string[]): Promise<void> {
    this.#say(await this.#run(words));
  }

  async #run(words: readonly string[]): Promise<string> {
    this.#say(`\n$ nodeyard ${words.join(" ")}\n`);
    let output = "";
    let errors = "";
    const io: Io = {
      out: (text) => {
        output += text;
      },
      err: (text) => {
        errors += text;
        this.#say(text);
      },
      isTerminal: false,
      ask: async () => undefined,
      columns: 100,
    };
    const exitCode = await main(["--state", this.#stateFolder, ...words], io, this.#machine);
    if (exitCode === 0) return output;
    const reason = errors.trim().split("\n").at(-1);
    throw new NodeyardError("demo.command_failed", `nodeyard ${words[0]} ended with ${exitCode}: ${reason}`);
  }
}
