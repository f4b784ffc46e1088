import { chmod, chown, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Clock,
  ignoring,
  type Random,
  type Resources,
  sleep,
  syncPath,
  tail,
  trim,
} from "@nodeyard/driver";
import { FILES, forwardedPort, isMachine } from "../machine/command-line.ts";
import { folders, readFacts } from "./files.ts";
import { type Maker, processOf } from "./process.ts";
import type { Account } from "./tools.ts";

/** The record of a machine. It is written before anything else is made for the machine, and never changed. */
export interface Wanted {
  readonly v: 1;
  /** Random; in QEMU's arguments, by which its process is recognised. */
  readonly uuid: string;
  readonly hostname: string;
  /** Use of the folder's limits, as counted for later claims. */
  readonly resources: Resources;
  /** User id of the machine's processes; absent: the provider's account. */
  readonly uid?: number;
  /** Number of its port on the bridge, if there is a bridge. */
  readonly number?: number;
  /** The process that makes it, for a guest that must end with that process. */
  readonly maker?: Maker;
}

/** A process that is proven to be this machine's QEMU. */
export interface Running {
  readonly pid: number;
  /** The host's forwarded port; null: the machine has an address of its own. */
  readonly port: number | null;
}

/** Pause between two looks at a process that was killed, milliseconds. */
const POLL_MS = 20;
/** Name of the file that marks a machine as having been up. */
const UP = "up";
/** Bytes of console or log beyond which they are emptied, and bytes of the console that are shown. */
const CONSOLE_MAX = 8 * 1024 * 1024;
const CONSOLE_TAIL = 256 * 1024;

/**
 * The machines of a host, one folder each. `wanted.json`, `base`, `kernel`, `initrd` and `seed` belong to the launcher. `run` belongs to
 * the user of QEMU, so its contents are not trusted.
 */
export class Nodes {
  readonly #root: string;
  readonly #account: Account;
  readonly #random: Random;

  constructor(root: string, account: Account, random: Random) {
    this.#root = root;
    this.#account = account;
    this.#random = random;
  }

  /** Path of a machine's folder, which need not exist. */
  folder(name: string): string {
    return join(this.#root, name);
  }

  /** Path of the part of the folder that belongs to QEMU's user. */
  run(name: string): string {
    return join(this.#root, name, "run");
  }

  /** Names of all machines, without drafts. */
  async names(): Promise<readonly string[]> {
    return (await folders(this.#root)).filter((name) => !name.startsWith("."));
  }

  /** The account of the machine's processes. Its primary group is its own, for its seed; the common group lets it read the images. */
  accountOf({ uid }: Pick<Wanted, "uid">): Account {
    if (uid === undefined || this.#account === null) return this.#account;
    return { uid, gid: uid, groups: [this.#account.gid] };
  }

  /** Creates the folder of a machine; false when it exists. By the rename it appears with its complete record or not at all. */
  async claim(name: string, wanted: Omit<Wanted, "v" | "uuid">): Promise<boolean> {
    const uuid = this.#random.uuid();
    const draft = join(this.#root, `.${uuid}`);
    await mkdir(join(draft, "run"), { recursive: true });
    try {
      // The launcher's umask must not keep QEMU's user out. 0711: it may enter the folder, but not list it.
      await chmod(draft, 0o711);
      await chmod(join(draft, "run"), 0o700);
      const account = this.accountOf(wanted);
      if (account !== null) await chown(join(draft, "run"), account.uid, account.gid);
      const text = JSON.stringify({ v: 1, uuid, ...wanted } satisfies Wanted);
      await writeFile(join(draft, "wanted.json"), text, { mode: 0o600, flush: true });
      // rename(2) does not replace a folder that is not empty.
      await rename(draft, this.folder(name));
      await syncPath(this.#root);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOTEMPTY" || code === "EEXIST") return false;
      throw error;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  /** Records that the machine was up. From now on a missing process means that the machine has ended. */
  async setUp(name: string): Promise<void> {
    await writeFile(join(this.folder(name), UP), "", { flush: true });
  }

  /** Whether the machine was up before, by this launcher or another. */
  async wasUp(name: string): Promise<boolean> {
    return (await ignoring("ENOENT", stat(join(this.folder(name), UP)))) !== undefined;
  }

  /** Removes the mark and the disk, so that the machine can boot again. */
  async clear(name: string): Promise<void> {
    for (const file of [FILES.disk, FILES.console]) await rm(join(this.run(name), file), { force: true });
    for (const mark of [UP, "frozen"])
      await rm(join(this.folder(name), mark), { recursive: true, force: true });
  }

  /** Undefined when there is no folder, or another program made it. */
  async wanted(name: string): Promise<Wanted | undefined> {
    const wanted = await readFacts<Partial<Wanted>>(join(this.folder(name), "wanted.json"));
    return wanted?.v === 1 && typeof wanted.uuid === "string" ? (wanted as Wanted) : undefined;
  }

  /** Whether the machine's folder exists, with or without a process. */
  async has(name: string): Promise<boolean> {
    return (await ignoring("ENOENT", stat(this.folder(name)))) !== undefined;
  }

  /** The process of the pid file, if its arguments prove that it is this machine: QEMU's user can write the pid file. */
  async running(name: string): Promise<Running | undefined> {
    const wanted = await this.wanted(name);
    const text = await tail(join(this.run(name), FILES.pid), 32);
    if (wanted === undefined || text === undefined) return undefined;
    const process = await processOf(Number(text.trim()));
    if (process === undefined || !isMachine(process.argv, wanted.uuid)) return undefined;
    return { pid: process.pid, port: forwardedPort(process.argv) ?? null };
  }

  /** Kills the machine's process and resolves when it is gone. */
  async end(name: string, clock: Clock, signal: AbortSignal): Promise<void> {
    // Deletes the disk first. QEMU writes its pid file before it opens the disk. A QEMU that was started just before its launcher died has
    // either written the pid file by now, or finds no disk and ends.
    await rm(join(this.run(name), FILES.disk), { force: true });
    const machine = await this.running(name);
    if (machine === undefined) return;
    // ESRCH: the process has ended since it was looked for.
    await ignoring("ESRCH", (async () => process.kill(machine.pid, "SIGKILL"))());
    while ((await this.running(name)) !== undefined) await sleep(clock, POLL_MS, signal);
  }

  /** Removes the folder of a machine that does not run. A missing folder is no error. */
  async discard(name: string): Promise<void> {
    await rm(this.folder(name), { recursive: true, force: true, maxRetries: 5 });
  }

  /** The end of the guest's output on its serial port; undefined when there is none. */
  async console(name: string): Promise<string | undefined> {
    return tail(join(this.run(name), FILES.console), CONSOLE_TAIL);
  }

  /** Truncates the console and the log, because a guest may write without end. */
  async trimConsole(name: string): Promise<void> {
    for (const file of [FILES.console, FILES.log]) await trim(join(this.run(name), file), CONSOLE_MAX);
  }
}
