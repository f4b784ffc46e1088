import { mkdir, readFile, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { join } from "node:path";
import { abortable, hashOf, ignoring } from "@nodeyard/driver";
import { stamp } from "./image-files.ts";

/** "tcg" runs everywhere, by translating the guest's code. */
export type Accelerator = "kvm" | "tcg";

/**
 * Results of probe boots, one file each: whether an image boots under the KVM of this host's kernel. Another image or another
 * kernel is probed again. Removing the folder makes the driver probe everything again.
 */
export class Accelerators {
  readonly #root: string;
  /** Probes of this process in progress, by key. Another process may probe the same image at the same time; the later result is kept. */
  readonly #underWay = new Map<string, Promise<Accelerator>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** The key of a result: a hash over the booted files and the kernel. */
  async key(files: readonly string[]): Promise<string> {
    const stamps = await Promise.all(files.map(stamp));
    // Without the number of links and the time of change: both change with every machine that is linked to the file.
    return hashOf([release(), ...stamps.map((text) => text.split(" ").slice(0, 4).join(" "))]);
  }

  /** The stored result; undefined when the image was not probed on this kernel, or the file is damaged. */
  async get(key: string): Promise<Accelerator | undefined> {
    const text = await ignoring("ENOENT", readFile(join(this.#root, key), "utf8"));
    return text === "kvm" || text === "tcg" ? text : undefined;
  }

  /** The result of a probe in progress, if there is one. */
  awaited(key: string, signal: AbortSignal): Promise<Accelerator> | undefined {
    const underWay = this.#underWay.get(key);
    return underWay === undefined ? undefined : abortable(underWay, signal);
  }

  /** Runs a probe and stores its result. A probe that fails for another reason has no result. */
  async probe(key: string, boot: () => Promise<Accelerator>): Promise<Accelerator> {
    const probing = boot();
    this.#underWay.set(key, probing);
    try {
      const found = await probing;
      await mkdir(this.#root, { recursive: true, mode: 0o700 });
      await writeFile(join(this.#root, key), found);
      return found;
    } finally {
      this.#underWay.delete(key);
    }
  }
}
