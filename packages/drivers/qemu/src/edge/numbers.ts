import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DriverError } from "@nodeyard/driver";
import type { NumberRange } from "../machine/firewall.ts";
import { ignoring } from "./files.ts";

/** A number is taken before the folder of its machine exists. After this time without a folder it is free again, milliseconds. */
const UNUSED_MS = 600_000;

/**
 * Assigns each machine a number for its user id or address. A number is a file that names the machine. Creating the file takes the
 * number, for this process and all others.
 */
export class Numbers {
  readonly #root: string;
  readonly #range: NumberRange;

  readonly #what: string;

  private constructor(root: string, range: NumberRange, what: string) {
    this.#root = root;
    this.#range = range;
    this.#what = what;
  }

  /** `what`: the configuration key of the range, for messages. */
  static async open(root: string, range: NumberRange, what: string): Promise<Numbers> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    return new Numbers(root, range, what);
  }

  /** Takes the lowest free number. Rejects with kind "quota" when all are taken by machines that exist. `now`: wall time, milliseconds. */
  async take(machine: string, alive: (machine: string) => Promise<boolean>, now: number): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const taken = new Set(await readdir(this.#root));
      for (let uid = this.#range.first; uid <= this.#range.last; uid++) {
        if (taken.has(String(uid))) continue;
        const file = join(this.#root, String(uid));
        // "wx" is the claim: of two processes one fails with EEXIST, and takes the next number.
        const made = writeFile(file, machine, { flag: "wx", mode: 0o600 }).then(() => true);
        if ((await ignoring("EEXIST", made)) === true) return uid;
      }
      if (attempt > 1 || !(await this.#sweep(alive, now)))
        throw new DriverError("quota", `all ${this.#what} are taken by machines; raise ${this.#what}`);
    }
  }

  /** Frees a number. Call it when the machine is removed completely. */
  async free(uid: number, machine: string): Promise<void> {
    const file = join(this.#root, String(uid));
    // The number may belong to another machine already, when this is the second call.
    if ((await ignoring("ENOENT", readFile(file, "utf8"))) === machine) await rm(file, { force: true });
  }

  /** Frees the numbers of machines whose launchers died. */
  async #sweep(alive: (machine: string) => Promise<boolean>, now: number): Promise<boolean> {
    let freed = false;
    for (const name of await readdir(this.#root)) {
      const file = join(this.#root, name);
      const machine = await ignoring("ENOENT", readFile(file, "utf8"));
      const made = await ignoring("ENOENT", stat(file));
      if (machine === undefined || made === undefined || now - made.mtimeMs < UNUSED_MS) continue;
      if (await alive(machine)) continue;
      await rm(file, { force: true });
      freed = true;
    }
    return freed;
  }
}

/** Rejects with kind `configuration` when a user of this host already has one of the ids. */
export async function assertIdsUnused({ first, last }: NumberRange): Promise<void> {
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  for (const line of passwd.split("\n")) {
    const [name, , uid] = line.split(":");
    if (uid !== undefined && Number(uid) >= first && Number(uid) <= last)
      throw new DriverError(
        "configuration",
        `users ${first}-${last} contains ${uid}, which is ${name} on this host; choose a range without users`,
      );
  }
}
