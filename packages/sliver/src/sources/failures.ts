import { messageOf } from "@nodeyard/runtime";
import type { ManagerLog } from "../manager/index.ts";

/** A failure that stays the same is logged again after this many times. */
const AGAIN = 60;

/** What is said of a source that fails: what is new, now and then that it lasts, and that it is over. */
export class Failures {
  readonly #source: string;
  readonly #log: ManagerLog;
  #last = "";
  #count = 0;

  constructor(source: string, log: ManagerLog) {
    this.#source = source;
    this.#log = log;
  }

  failed(error: unknown): void {
    const text = messageOf(error);
    this.#count = text === this.#last ? this.#count + 1 : 1;
    this.#last = text;
    if (this.#count === 1) this.#log.error(`${this.#source}: ${text}`);
    else if (this.#count % AGAIN === 0)
      this.#log.error(`${this.#source}: ${text} (${this.#count} times in a row)`);
  }

  worked(): void {
    if (this.#count > 0) this.#log.info(`${this.#source}: works again`);
    this.#last = "";
    this.#count = 0;
  }
}
