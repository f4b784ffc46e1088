import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DriverError } from "@nodeyard/driver";
import type { UserRange } from "../own.ts";
import { ignoring } from "./files.ts";

/** A number is taken before the folder of its machine is there: one this old without a folder is of none. Milliseconds. */
const UNUSED_MS = 600_000;

/**
 * A user of its own for each machine: numbers of a range that are nobody's, one file each, which names the machine. Whoever makes the
 * file has the number, in this process and in others.
 */
export class Users {
  readonly #root: string;
  readonly #range: UserRange;

  constructor(root: string, range: UserRange) {
    this.#root = root;
    this.#range = range;
  }

  /** Rejects with kind `quota` when all are taken, and with `configuration` when one of them is somebody's already. */
  static async open(root: string, range: UserRange): Promise<Users> {
    const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
    for (const line of passwd.split("\n")) {
      const [name, , uid] = line.split(":");
      if (uid !== undefined && Number(uid) >= range.first && Number(uid) <= range.last)
        throw new DriverError(
          "configuration",
          `users ${range.first}-${range.last} has ${uid}, which is ${name}; choose numbers that are nobody's`,
        );
    }
    await mkdir(root, { recursive: true, mode: 0o700 });
    return new Users(root, range);
  }

  async take(machine: string, alive: (machine: string) => Promise<boolean>, now: number): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const taken = new Set(await readdir(this.#root));
      for (let uid = this.#range.first; uid <= this.#range.last; uid++) {
        if (taken.has(String(uid))) continue;
        const file = join(this.#root, String(uid));
        const made = writeFile(file, machine, { flag: "wx", mode: 0o600 }).then(() => true);
        if ((await ignoring("EEXIST", made)) === true) return uid;
      }
      const { first, last } = this.#range;
      if (attempt > 1 || !(await this.#sweep(alive, now)))
        throw new DriverError("quota", `all users from ${first} to ${last} have a machine; raise users`);
    }
  }

  /** When nothing of the machine is left. */
  async free(uid: number, machine: string): Promise<void> {
    const file = join(this.#root, String(uid));
    if ((await ignoring("ENOENT", readFile(file, "utf8"))) === machine) await rm(file, { force: true });
  }

  /** Gives back what launchers had when they died. */
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
