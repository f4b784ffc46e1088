import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { patient } from "../patience.ts";

const run = promisify(execFile);
/** Far beyond what each takes on a busy machine, milliseconds: for what hangs. */
const BOOT_MS = patient(180_000);
const COMMAND_MS = patient(180_000);
const LOOK_MS = 200;

/** A Debian of its own with a systemd that runs, and no network but its loopback. */
export class Container {
  readonly #nspawn: ChildProcess;
  #systemd = 0;

  /** Boots the root file system in `root`, which it changes; `/release` is the folder `release`. */
  static async boot(root: string, release: string): Promise<Container> {
    const words = ["--quiet", "--register=no", "--keep-unit", "--private-network", "--resolv-conf=off"];
    const made = new Container(
      spawn(
        "systemd-nspawn",
        [
          ...words,
          `--bind-ro=${release}:/release`,
          `--directory=${root}`,
          `--machine=nodeyard-${process.pid}`,
          "--console=pipe",
          "--boot",
        ],
        { stdio: ["ignore", "inherit", "inherit"] },
      ),
    );
    try {
      await made.#booted();
    } catch (error) {
      await made.close();
      throw error;
    }
    return made;
  }

  private constructor(nspawn: ChildProcess) {
    this.#nspawn = nspawn;
  }

  /** Runs a script of bash in `folder` and returns what it wrote to stdout. Rejects with its stderr when a command fails. */
  async run(script: string, folder = "/"): Promise<string> {
    const env = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"];
    const bash = ["bash", "--norc", "-euo", "pipefail", "-c", `cd ${folder}\n${script}`];
    const words = ["--target", `${this.#systemd}`, "--all", ...env, ...bash];
    const { stdout } = await run("nsenter", words, { timeout: COMMAND_MS });
    return stdout;
  }

  async close(): Promise<void> {
    const { exitCode, signalCode } = this.#nspawn;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(this.#nspawn, "exit");
    // The end of its first process is the end of a container.
    if (this.#systemd > 0) process.kill(this.#systemd, "SIGKILL");
    else this.#nspawn.kill("SIGKILL");
    await ended;
  }

  async #booted(): Promise<void> {
    const { pid } = this.#nspawn;
    const end = performance.now() + BOOT_MS;
    while (performance.now() < end && this.#nspawn.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      this.#systemd = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")[0]);
      if (this.#systemd === 0) continue;
      const state = await this.run("systemctl is-system-running || true").catch(() => "");
      // Degraded: a unit of Debian's own does not work in a container.
      if (["running", "degraded"].includes(state.trim())) return;
    }
    throw new Error("the container's systemd does not start");
  }
}
