import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { NodeyardError } from "@nodeyard/runtime";
import type { Machine } from "@nodeyard/telemetry/machine";
import { type Io, main } from "nodeyard";

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

/** The fields of `nodeyard list --leases --json` that the demo uses. */
interface Listed {
  readonly id: string;
  readonly state: string;
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

  /**
   * Releases what this demo has, or one that was killed: the next one needs the hosts. Leases that a person has released, or that have
   * expired, are passed over.
   */
  async releaseAll(): Promise<void> {
    const ids = existsSync(this.#leases) ? readFileSync(this.#leases, "utf8").split("\n") : [];
    const listed = JSON.parse(await this.#run(["list", "--leases", "--json"], () => {})) as readonly Listed[];
    const held = listed.filter(({ id, state }) => ids.includes(id) && state !== "released");
    if (held.length > 0) await this.#run(["release", ...held.map(({ id }) => id)]);
    rmSync(this.#leases, { force: true });
  }

  async show(...words: readonly string[]): Promise<void> {
    this.#say(await this.#run(words));
  }

  async #run(words: readonly string[], say = this.#say): Promise<string> {
    say(`\n$ nodeyard ${words.join(" ")}\n`);
    let output = "";
    let errors = "";
    const io: Io = {
      out: (text) => {
        output += text;
      },
      err: (text) => {
        errors += text;
        say(text);
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
