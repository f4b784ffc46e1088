import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import { freePort } from "../../zookeeper/ports.ts";
import { SSH_OPTIONS } from "./ssh-options.ts";

const run = promisify(execFile);
const ADDRESS = "127.0.0.1";
const MEBIBYTES = 1536;
/** Milliseconds: without KVM, and on a busy machine, Debian takes minutes to boot. */
const BOOT = 30 * 60_000;
const COMMAND = 15 * 60_000;
const LOGIN = 3 * 60_000;
const LOOK = 1_000;

/** A virtual machine that boots an image, is reachable by SSH alone, and has no network out. */
export class HostMachine {
  readonly address = ADDRESS;
  readonly port: number;
  readonly #folder: string;
  readonly #child: ChildProcess;
  #hostKeys: readonly string[] = [];

  private constructor(folder: string, port: number, child: ChildProcess) {
    this.#folder = folder;
    this.port = port;
    this.#child = child;
  }

  /** Boots a copy of `image`; the key in `folder` logs in as root. */
  static async boot(folder: string, image: string, signal: AbortSignal): Promise<HostMachine> {
    const disk = join(folder, "disk.qcow2");
    await run("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", image, disk]);
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", join(folder, "id")]);
    const port = await freePort();
    const console = openSync(join(folder, "console"), "w");
    const seed = (name: string, file: string) => ["-fw_cfg", `name=opt/org.nodeyard/${name},file=${file}`];
    const words = [
      ...["-nodefaults", "-no-user-config", "-display", "none", "-m", String(MEBIBYTES)],
      ...["-accel", "tcg", "-cpu", "max", "-smp", "2", "-device", "virtio-rng-pci"],
      ...["-drive", `file=${disk},if=virtio,format=qcow2,cache=unsafe`],
      ...["-netdev", `user,id=net,restrict=on,hostfwd=tcp:${ADDRESS}:${port}-:22`],
      ...["-device", "virtio-net-pci,netdev=net", "-serial", "stdio"],
      ...seed("authorized-keys", join(folder, "id.pub")),
    ];
    const child = spawn("qemu-system-x86_64", words, { stdio: ["ignore", console, console], signal });
    // So that a waiting caller sees that it has ended.
    child.on("error", () => undefined);
    closeSync(console);
    const machine = new HostMachine(folder, port, child);
    try {
      await machine.#scan();
      await machine.#reached();
    } catch (error) {
      await machine.stop();
      throw error;
    }
    return machine;
  }

  get hostKeys(): readonly string[] {
    return this.#hostKeys;
  }

  /** For programs that take a login from an ssh configuration; the machine is called `host` in it. */
  get sshConfig(): string {
    return join(this.#folder, "ssh_config");
  }

  /** Runs a script there as root. Rejects with its output. */
  async sh(script: string, timeout = COMMAND): Promise<string> {
    const words = ["-F", this.sshConfig, ...SSH_OPTIONS, "root@host", script];
    for (let attempt = 1; ; attempt++) {
      try {
        return (await run("ssh", words, { timeout, maxBuffer: 1 << 24 })).stdout.trim();
      } catch (error) {
        // A server that reloads its configuration refuses connections for a moment; nothing has been run by then.
        if (attempt === 5 || !(error as Error).message.includes("kex_exchange_identification")) throw error;
        await pause(LOOK);
      }
    }
  }

  /** Resolves when it was down and answers again. */
  async reboot(): Promise<void> {
    const boot = await this.#bootId();
    // The connection ends when the machine goes down.
    await this.sh("systemctl --no-block reboot");
    for (const end = performance.now() + BOOT; ; await pause(LOOK)) {
      this.#mustRun();
      const now = await this.#bootId().catch(() => boot);
      if (now !== boot) return;
      if (performance.now() > end) throw new Error(`it did not come back:\n${await this.console()}`);
    }
  }

  /** The end of its serial console's output. */
  async console(): Promise<string> {
    return (await readFile(join(this.#folder, "console"), "utf8")).slice(-4_000);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }

  #bootId(): Promise<string> {
    return this.sh("cat /proc/sys/kernel/random/boot_id", LOGIN);
  }

  async #scan(): Promise<void> {
    const scanner = createScanner({ clock: systemClock });
    for (const end = performance.now() + BOOT; this.#hostKeys.length === 0; await pause(LOOK)) {
      this.#mustRun();
      if (performance.now() > end) throw new Error(`it does not answer:\n${await this.console()}`);
      const found = scanner.scan({ host: ADDRESS, port: this.port, keys: true, timeoutMs: 60_000 });
      this.#hostKeys = await found.then(
        ({ hostKeys }) => hostKeys,
        () => [],
      );
    }
    const known = join(this.#folder, "known_hosts");
    await writeFile(known, this.#hostKeys.map((key) => `host ${key}\n`).join(""));
    const lines = [
      `HostName ${ADDRESS}`,
      `Port ${this.port}`,
      "HostKeyAlias host",
      `IdentityFile ${join(this.#folder, "id")}`,
      "IdentitiesOnly yes",
      `UserKnownHostsFile ${known}`,
    ];
    await writeFile(this.sshConfig, `Host host\n${lines.map((line) => `  ${line}\n`).join("")}`);
  }

  /** sshd accepts connections before logins work. */
  async #reached(): Promise<void> {
    for (const end = performance.now() + BOOT; ; await pause(LOOK)) {
      this.#mustRun();
      try {
        await this.#bootId();
        return;
      } catch (cause) {
        if (performance.now() > end) throw new Error("nobody is let in", { cause });
      }
    }
  }

  #mustRun(): void {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null)
      throw new Error(`QEMU ended with ${exitCode ?? signalCode}; see ${this.#folder}/console`);
  }
}
