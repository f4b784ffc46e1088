import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DriverError, ignoring } from "@nodeyard/driver";
import type { NumberRange } from "../machine/firewall.ts";

/** A number is taken before the folder of its machine exists. After this time without a folder it is free again, milliseconds. */
const UNUSED_MS = 600_000;

/** Whether a machine exists. */
export type IsAlive = (machine: string) => Promise<boolean>;

/** What `openNumbers` opens. */
export type Numbers = Awaited<ReturnType<typeof openNumbers>>;

/**
 * Assigns each machine a number for its user id or address. A number is a file that names the machine. Creating the file takes the
 * number, for this process and all others. `what`: the configuration key of the range, for messages.
 */
export async function openNumbers(root: string, { first, last }: NumberRange, what: string) {
  await mkdir(root, { recursive: true, mode: 0o700 });

  /** Frees the numbers of machines whose launchers died. */
  async function sweep(alive: IsAlive, now: number): Promise<boolean> {
    let freed = false;
    for (const name of await readdir(root)) {
      const file = join(root, name);
      const machine = await ignoring("ENOENT", readFile(file, "utf8"));
      const made = await ignoring("ENOENT", stat(file));
      if (machine === undefined || made === undefined || now - made.mtimeMs < UNUSED_MS) continue;
      if (await alive(machine)) continue;
      await rm(file, { force: true });
      freed = true;
    }
    return freed;
  }

  return {
    /** Takes the lowest free number. Rejects with kind "quota" when all are taken by machines that exist. `now`: wall time, milliseconds. */
    async take(machine: string, alive: IsAlive, now: number): Promise<number> {
      for (let attempt = 1; ; attempt++) {
        const taken = new Set(await readdir(root));
        for (let number = first; number <= last; number++) {
          if (taken.has(String(number))) continue;
          // "wx" is the claim: of two processes one fails with EEXIST, and takes the next number.
          const claim = writeFile(join(root, String(number)), machine, { flag: "wx", mode: 0o600 });
          if (
            (await ignoring(
              "EEXIST",
              claim.then(() => true),
            )) === true
          )
            return number;
        }
        if (attempt > 1 || !(await sweep(alive, now)))
          throw new DriverError("quota", `all ${what} are taken by machines; raise ${what}`);
      }
    },
    /** Frees a number. Call it when the machine is removed completely. */
    async free(number: number, machine: string): Promise<void> {
      const file = join(root, String(number));
      // The number may belong to another machine already, when this is the second call.
      if ((await ignoring("ENOENT", readFile(file, "utf8"))) === machine) await rm(file, { force: true });
    },
  };
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
