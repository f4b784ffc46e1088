import type { Clock, Random } from "@nodeyard/runtime";
import type { FakeProviderOwn } from "../config.ts";
import { FakeCloud } from "./fake-cloud.ts";
import type { Journal } from "./journal.ts";

/** Opens the journal in a file. */
export type OpenJournal = (path: string) => Journal;

/**
 * The clouds of one process by name, so that a reloaded provider, and a builder beside a launcher, see the same machines. They
 * are kept per clock: two simulations in one process never meet.
 */
export class Clouds {
  readonly #openJournal: OpenJournal;
  readonly #byClock = new WeakMap<Clock, Map<string, FakeCloud>>();

  constructor(openJournal: OpenJournal) {
    this.#openJournal = openJournal;
  }

  /** The cloud of that name, with the provider's knobs from now on. */
  open(own: FakeProviderOwn, clock: Clock, random: Random): FakeCloud {
    const clouds = this.#byClock.get(clock) ?? new Map<string, FakeCloud>();
    this.#byClock.set(clock, clouds);
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
