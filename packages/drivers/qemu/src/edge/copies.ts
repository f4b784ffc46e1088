import { createHash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, DriverError, ignoring, type Random, SharedValues, syncPath } from "@nodeyard/driver";
import type { FileImage } from "../config.ts";
import { mapError } from "../errors.ts";
import { folders, readFacts } from "./files.ts";
import { copied, inspected, placed, stamp } from "./image-files.ts";
import type { Account } from "./tools.ts";
import type { StoredImage } from "./uploads.ts";

/** Time limit of one copy, milliseconds. */
const COPY_MS = 30 * 60_000;

/**
 * Copies of files that labels name: images, kernels, initial RAM disks. Machines boot from copies, so that a user who can write the
 * original changes neither a running machine nor a file between its check and its use.
 */
export class Copies {
  readonly #root: string;
  readonly #account: Account;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #copying: SharedValues<StoredImage>;

  constructor(root: string, account: Account, clock: Clock, random: Random) {
    this.#root = root;
    this.#account = account;
    this.#clock = clock;
    this.#random = random;
    this.#copying = new SharedValues(clock);
  }

  /** The checked copy of the image in its present state. Concurrent callers share one copy in progress. */
  image({ path, format }: FileImage, signal: AbortSignal): Promise<StoredImage> {
    return this.#get(path, format, signal);
  }

  /** The copy of a file that is not inspected. */
  plain(path: string, signal: AbortSignal): Promise<StoredImage> {
    return this.#get(path, "plain", signal);
  }

  /** Names of the complete copies. */
  names(): Promise<readonly string[]> {
    return folders(this.#root);
  }

  /** Ends copies in progress; their callers get an error. */
  close(): void {
    this.#copying.close();
  }

  async #get(path: string, format: string, signal: AbortSignal): Promise<StoredImage> {
    const now = await ignoring("ENOENT", stamp(path));
    if (now === undefined)
      throw new DriverError(
        "configuration",
        `there is no file ${path}; put the image there, or correct the path`,
      );
    // The second part changes with the file's state, so a changed file gets a new copy, and old machines keep theirs.
    const name = `${digest(`${format} ${path}`)}-${digest(now)}`;
    const there = await this.#there(name);
    if (there !== undefined) return there;
    const load = (limit: AbortSignal) =>
      this.#copy(name, path, format, now, limit).catch((error: unknown) => {
        throw mapError(error, path);
      });
    // A copy goes on when its callers give up.
    return this.#copying.get(`copy ${name} of ${path}`, { load, loadMs: COPY_MS, freshMs: -1 }, signal);
  }

  async #copy(name: string, path: string, format: string, now: string, signal: AbortSignal) {
    let virtualSize = 0;
    // Another provider with the same folder may copy the same file at the same time.
    await placed(join(this.#root, name), join(this.#root, `.${this.#random.uuid()}`), async (draft) => {
      const file = join(draft, "file");
      await copied(path, file, this.#account, signal);
      // A file that is written during the copy would give a mixture of two contents.
      if ((await stamp(path)) !== now)
        throw new DriverError("transient", `${path} was changed while it was copied`);
      const ctx = { account: this.#account, clock: this.#clock, signal };
      if (format !== "plain") ({ virtualSize } = await inspected(file, format, path, ctx));
      await writeFile(join(draft, "file.json"), JSON.stringify({ format, virtualSize }), { flush: true });
      await syncPath(file);
    });
    await this.#forget(name);
    return { file: join(this.#root, name, "file"), id: name, format, virtualSize };
  }

  /** Removes copies of earlier contents of the path. Machines keep them by hard links of their own. */
  async #forget(name: string): Promise<void> {
    const [of] = name.split("-");
    for (const other of await folders(this.#root))
      if (other !== name && other.startsWith(`${of}-`))
        await rm(join(this.#root, other), { recursive: true, force: true });
  }

  async #there(name: string): Promise<StoredImage | undefined> {
    const facts = await readFacts<Omit<StoredImage, "file" | "id">>(join(this.#root, name, "file.json"));
    return facts && { file: join(this.#root, name, "file"), id: name, ...facts };
  }
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
