import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a job wrote of itself on its node. */
export interface Mark {
  readonly job: string;
  readonly what: "begin" | "end";
  /** Address at which the node was logged in to; each node of a day has its own. */
  readonly address: string;
  /** Wall clock, milliseconds. */
  readonly at: number;
}

/** A file to which jobs append a line when they begin and one when they end, from whatever node they run on. */
export class Ledger {
  readonly #folder: string;

  /** `folder`: of this machine, which all nodes are. */
  constructor(folder: string) {
    this.#folder = folder;
    writeFileSync(join(folder, "ledger"), "");
    // sshd says in SSH_CONNECTION who logged in and where: client, port, node, port. A line as short as this is appended whole.
    const script = `#!/bin/sh
job=$1 seconds=$2
set -- $SSH_CONNECTION
mark() { echo "$job $1 $2 $(date +%s%3N)" >>${folder}/ledger; }
mark begin "$3"
sleep "$seconds"
mark end "$3"
`;
    writeFileSync(join(folder, "job"), script, { mode: 0o755 });
  }

  /** The command of a job that takes so long. */
  line(job: string, seconds = 1): string {
    return `${this.#folder}/job ${job} ${seconds}`;
  }

  marks(): readonly Mark[] {
    const lines = readFileSync(join(this.#folder, "ledger"), "utf8").trim().split("\n");
    return lines.map((line) => {
      const [job, what, address, at] = line.split(" ") as [string, Mark["what"], string, string];
      return { job, what, address, at: Number(at) };
    });
  }
}
