import type { Clock, Random } from "@nodeyard/runtime";
import type { FakeProviderOwn } from "../config.ts";
import { FakeCloud } from "./fake-cloud.ts";
import type { Journal } from "./journal.ts";

/** Opens the journal in a file. */
export type OpenJournal = (path: string) => Journal;

/**
 * The fake clouds of a process by name, so that a reloaded provider, and a builder besides a launcher, see the same machines. Clouds
 * are kept per clock, so that two simulations in one process do not share any.
 */
export class Clouds {
  readonly #openJournal: OpenJournal;
  readonly #byClock = new WeakMap<Clock, Map<string, FakeCloud>>();

  constructor(openJournal: OpenJournal) {
    this.#openJournal = openJournal;
  }

  /** The cloud with the provider's name. It uses the provider's knobs from now on. */
  open(own: FakeProviderOwn, clock: Clock, random: Random): FakeCloud {
    const clouds = this.#byClock.get(clock) ?? new Map<string, FakeCloud>();
    this.#byClock.set(clock, clouds);
    // Clouds with the same name and different journals are different clouds.
    const key = `${own.cloud} ${own.journal ?? ""}`;
    const existing = clouds.get(key);
    if (existing !== undefined) {
      existing.adjust(own.knobs);
      return existing;
    }
    const journal = own.journal === null ? {} : { journal: this.#openJournal(own.journal) };
    const cloud = new FakeCloud({ clock, random, knobs: own.knobs, ...journal });
    clouds.set(key, cloud);
    return cloud;
  }
}
