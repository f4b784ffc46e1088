import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Node cannot receive datagrams of Unix sockets. */
const RECEIVE = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(receiver.recv(4096).decode().strip().replace("\\n", " "), flush=True)
`;

import { requireTools } from "../skipped.ts";

/** Stands for the systemd that a service reports to. */
export class NotifySocket {
  readonly path: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "nodeyard-notify-"));
  readonly #child: ChildProcess;
  readonly #reports: string[] = [];
  #heard: () => void = () => {};

  private constructor() {
    this.path = join(this.#folder, "notify");
    this.#child = spawn("python3", ["-c", RECEIVE, this.path], { stdio: ["ignore", "pipe", "inherit"] });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      // What systemd-notify asks for itself, to learn that its report was read.
      if (line !== "BARRIER=1") this.#reports.push(line);
      this.#heard();
    });
  }

  static async open(): Promise<NotifySocket> {
    const made = new NotifySocket();
    await made.until((reports) => reports.includes("bound"));
    made.#reports.length = 0;
    return made;
  }

  /** Reports so far, in order. */
  get reports(): readonly string[] {
    return this.#reports;
  }

  /** Resolves when the reports are as `check` wants them. */
  async until(check: (reports: readonly string[]) => boolean): Promise<void> {
    while (!check(this.#reports)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#heard = resolve;
      await promise;
    }
  }

  close(): void {
    this.#child.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** For `describe.skipIf(requireSystemd())`: why systemd's programs cannot be used. */
export const requireSystemd = () => requireTools("tests of services", "systemd-notify");
