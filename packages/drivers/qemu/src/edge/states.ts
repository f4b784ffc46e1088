import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DriverError, ignoring, type Random, syncPath } from "@nodeyard/driver";
import { folders, readFacts, sha256 } from "./files.ts";
import { placed, stamp } from "./image-files.ts";

/** A guest that was saved before it got an identity, and its disk at that moment. */
export interface SavedState {
  readonly key: string;
  /** Paths of the guest's memory and devices, and of its disk. */
  readonly state: string;
  readonly disk: string;
}

interface Entry {
  readonly v: 1;
  /** Image from which it was started. */
  readonly image: string;
  readonly emulator: string;
  /** Version of QEMU that can read the state. */
  readonly qemu: string;
  /** Size and checksum of the file `state`. */
  readonly bytes: number;
  readonly sha256: string;
}

/** Facts of a state when it is stored. */
export type StateFacts = Omit<Entry, "v">;

/** Saved states, one folder for each key: `state`, `disk`, and `saved.json` with the facts. */
export class States {
  readonly #root: string;
  readonly #random: Random;
  /** Checksums of the states that were checked, with their file stamps at that time. */
  readonly #whole = new Map<string, string>();

  constructor(root: string, random: Random) {
    this.#root = root;
    this.#random = random;
  }

  /**
   * Undefined when there is no state. A state whose checksum is wrong is removed and reported as damaged, because QEMU would accept most of
   * it as a guest's memory. The first caller checks the whole file; it is checked again after the file was touched.
   */
  async get(key: string, signal: AbortSignal): Promise<SavedState | undefined> {
    const entry = await this.#entry(key);
    if (entry === undefined) return undefined;
    const found = this.#at(key);
    const now = await ignoring("ENOENT", stamp(found.state));
    if (now !== undefined && this.#whole.get(key) === now) return found;
    const sum = now === undefined ? "nothing" : await sha256(found.state, signal);
    if (sum !== entry.sha256) {
      await this.forget(key);
      throw new DriverError("transient", `${found.state} is damaged: it has ${sum}, not ${entry.sha256}`);
    }
    this.#whole.set(key, now as string);
    return found;
  }

  /** Adds a state. An existing one is kept. */
  async add(key: string, fill: (draft: SavedState) => Promise<StateFacts>): Promise<void> {
    await placed(join(this.#root, key), join(this.#root, `.${this.#random.uuid()}`), async (draft) => {
      const facts = await fill({ key, state: join(draft, "state"), disk: join(draft, "disk") });
      const entry: Entry = { v: 1, ...facts };
      await writeFile(join(draft, "saved.json"), JSON.stringify(entry), { flush: true });
      await syncPath(join(draft, "disk"));
    });
  }

  /** Removes a state. Machines that use it keep its files by hard links. A missing state is no error. */
  async forget(key: string): Promise<void> {
    this.#whole.delete(key);
    await rm(join(this.#root, key), { recursive: true, force: true });
  }

  /** Removes states of images that no longer exist, and of older versions of the emulator. */
  async retire(images: ReadonlySet<string>, emulator: string, qemu: string): Promise<void> {
    for (const key of await folders(this.#root)) {
      if (key.startsWith(".")) continue;
      const entry = await this.#entry(key);
      // States of another emulator's path stay: another provider with the same folder may use that one.
      const old = entry?.emulator === emulator && entry.qemu !== qemu;
      if (entry === undefined || old || !images.has(entry.image)) await this.forget(key);
    }
  }

  #at(key: string): SavedState {
    const folder = join(this.#root, key);
    return { key, state: join(folder, "state"), disk: join(folder, "disk") };
  }

  async #entry(key: string): Promise<Entry | undefined> {
    // An incomplete entry, or one of another version, counts as missing. It stays until it is retired.
    const entry = await readFacts<Entry>(join(this.#root, key, "saved.json"));
    return entry?.v === 1 ? entry : undefined;
  }
}
