import { chmod, chown, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Random, type Resources, sleep } from "@nodeyard/driver";
import { FILES, forwardedPort, isMachine } from "../machine/command-line.ts";
import { folders, ignoring, readFacts, sync, tail, trim } from "./files.ts";
import { type Maker, processOf } from "./process.ts";
import type { Account } from "./tools.ts";

/** Written before anything else of a machine, and never changed. */
export interface Wanted {
  readonly v: 1;
  readonly uuid: string;
  readonly hostname: string;
  readonly resources: Resources;
  /** A user of its own that it runs as; absent: that of all. */
  readonly uid?: number;
  /** Its place on the bridge, where there is one. */
  readonly number?: number;
  /** Who makes it, where it lives only as long as somebody does. */
  readonly maker?: Maker;
}

/** A QEMU that is proven to be of this machine. */
export interface Running {
  readonly pid: number;
  /** Of the host; null: the machine has an address of its own. */
  readonly port: number | null;
}

const POLL_MS = 20;
const UP = "up";
const CONSOLE_MAX = 8 * 1024 * 1024;
const CONSOLE_TAIL = 256 * 1024;

/**
 * The machines of a host: one folder each. `wanted.json`, `base`, `kernel`, `initrd` and `seed` are the launcher's; `run` is
 * the user's that QEMU runs as, and nothing in it is believed.
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

  folder(name: string): string {
    return join(this.#root, name);
  }

  run(name: string): string {
    return join(this.#root, name, "run");
  }

  async names(): Promise<readonly string[]> {
    return (await folders(this.#root)).filter((name) => !name.startsWith("."));
  }

  /** Who the machine's programs run as. Its group is its own too, and that of all is one more: it reads the images, and no seeds. */
  accountOf({ uid }: Pick<Wanted, "uid">): Account {
    if (uid === undefined || this.#account === null) return this.#account;
    return { uid, gid: uid, groups: [this.#account.gid] };
  }

  /** Makes the folder of a machine; false when there is one already. It is there with all that says what it is, or not at all. */
  async claim(name: string, wanted: Omit<Wanted, "v" | "uuid">): Promise<boolean> {
    const uuid = this.#random.uuid();
    const draft = join(this.#root, `.${uuid}`);
    await mkdir(join(draft, "run"), { recursive: true });
    try {
      await chmod(draft, 0o711);
      await chmod(join(draft, "run"), 0o700);
      const account = this.accountOf(wanted);
      if (account !== null) await chown(join(draft, "run"), account.uid, account.gid);
      const text = JSON.stringify({ v: 1, uuid, ...wanted } satisfies Wanted);
      await writeFile(join(draft, "wanted.json"), text, { mode: 0o600, flush: true });
      // A folder that is not empty is not replaced.
      await rename(draft, this.folder(name));
      await sync(this.#root);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOTEMPTY" || code === "EEXIST") return false;
      throw error;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  /** Remembers that the machine was up: from now on, one without a process has ended. */
  async setUp(name: string): Promise<void> {
    await writeFile(join(this.folder(name), UP), "", { flush: true });
  }

  async wasUp(name: string): Promise<boolean> {
    return (await ignoring("ENOENT", stat(join(this.folder(name), UP)))) !== undefined;
  }

  /** Forgets that it was, and with what. */
  async clear(name: string): Promise<void> {
    for (const file of [FILES.disk, FILES.console]) await rm(join(this.run(name), file), { force: true });
    for (const mark of [UP, "frozen"])
      await rm(join(this.folder(name), mark), { recursive: true, force: true });
  }

  /** Undefined: no folder, or one that somebody else made. */
  async wanted(name: string): Promise<Wanted | undefined> {
    const wanted = await readFacts<Partial<Wanted>>(join(this.folder(name), "wanted.json"));
    return wanted?.v === 1 && typeof wanted.uuid === "string" ? (wanted as Wanted) : undefined;
  }

  async has(name: string): Promise<boolean> {
    return (await ignoring("ENOENT", stat(this.folder(name)))) !== undefined;
  }

  /** The process behind the pid file, if it is this machine's: the file is QEMU's, so its arguments have to prove it. */
  async running(name: string): Promise<Running | undefined> {
    const wanted = await this.wanted(name);
    const text = await tail(join(this.run(name), FILES.pid), 32);
    if (wanted === undefined || text === undefined) return undefined;
    const process = await processOf(Number(text.trim()));
    if (process === undefined || !isMachine(process.argv, wanted.uuid)) return undefined;
    return { pid: process.pid, port: forwardedPort(process.argv) ?? null };
  }

  /** Kills the machine's process and returns when it is gone. */
  async end(name: string, clock: Clock, signal: AbortSignal): Promise<void> {
    // QEMU writes its pid file before it opens the disk. One that a launcher started just before it died either has written
    // it by now, or finds no disk and ends.
    await rm(join(this.run(name), FILES.disk), { force: true });
    const machine = await this.running(name);
    if (machine === undefined) return;
    await ignoring("ESRCH", (async () => process.kill(machine.pid, "SIGKILL"))());
    while ((await this.running(name)) !== undefined) await sleep(clock, POLL_MS, signal);
  }

  /** Removes what is left of a machine that does not run. Gone already: nothing. */
  async discard(name: string): Promise<void> {
    await rm(this.folder(name), { recursive: true, force: true, maxRetries: 5 });
  }

  /** The end of what the guest wrote to its serial port; undefined: nothing (any more). */
  async console(name: string): Promise<string | undefined> {
    return tail(join(this.run(name), FILES.console), CONSOLE_TAIL);
  }

  /** A guest may write without end. */
  async trimConsole(name: string): Promise<void> {
    for (const file of [FILES.console, FILES.log]) await trim(join(this.run(name), file), CONSOLE_MAX);
  }
}
