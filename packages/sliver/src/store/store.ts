import { messageOf } from "@nodeyard/runtime";
import { EMPTY_STATE, type State } from "../core/index.ts";
import { decodeState, encodeState } from "./codec.ts";
import { type Generation, seal, unseal } from "./envelope.ts";
import { StoreWriteError } from "./errors.ts";
import type { StoreFiles } from "./files.ts";

const SLOTS = ["state.0.json", "state.1.json"] as const;
const DRAFT = "state.draft";

export interface Loaded {
  readonly state: State;
  /** Files that are there and cannot be read as a store: what they held is lost, and the state is safe. */
  readonly damaged: readonly string[];
}

/**
 * Two generations in two files, written in turn: the one that counts is never touched while the next is made. A file
 * has its name only when its content is durable, so a damaged file is no crash but a broken disk, or a person.
 */
export class Store {
  readonly #files: StoreFiles;
  readonly #node: string;
  #sequence = 0;
  /** Slot of the last generation that is known to be durable. */
  #current = 1;
  #last: Promise<unknown> = Promise.resolve();

  constructor(files: StoreFiles, node: string) {
    this.#files = files;
    this.#node = node;
  }

  /** Throws ForeignStoreError, NewerStoreError, and what the file system throws. */
  async load(): Promise<Loaded> {
    const damaged: string[] = [];
    let best: (Generation & { slot: number; state: State }) | undefined;
    for (const [slot, name] of SLOTS.entries()) {
      const bytes = await this.#files.read(name);
      if (bytes === undefined) continue;
      const generation = unseal(bytes, this.#node);
      const state = generation && decodeState(generation.body);
      if (state === undefined) damaged.push(name);
      else if (best === undefined || generation!.sequence > best.sequence)
        best = { ...generation!, slot, state };
    }
    if (best !== undefined) {
      this.#sequence = best.sequence;
      this.#current = best.slot;
    }
    const state = best?.state ?? EMPTY_STATE;
    return { state: damaged.length === 0 ? state : { ...state, safe: true }, damaged };
  }

  /**
   * Resolves when `state` survives a loss of power; rejects with StoreWriteError when that is not sure, and then either
   * this state or the one before is found after a crash. Calls are carried out one after another.
   */
  save(state: State): Promise<void> {
    const run = this.#last.then(() => this.#write(encodeState(state)));
    this.#last = run.catch(() => undefined);
    return run;
  }

  async #write(body: string): Promise<void> {
    // Each attempt counts: one that failed late may have reached the disk and must not win over the next.
    const sequence = ++this.#sequence;
    const slot = 1 - this.#current;
    try {
      await this.#files.remove(DRAFT);
      const file = await this.#files.create(DRAFT);
      try {
        await file.write(seal(this.#node, { sequence, body }));
        await file.sync();
      } finally {
        await file.close();
      }
      await this.#files.rename(DRAFT, SLOTS[slot]!);
      await this.#files.syncFolder();
    } catch (cause) {
      throw new StoreWriteError(`cannot write the store: ${messageOf(cause)}`, { cause });
    }
    this.#current = slot;
  }
}
