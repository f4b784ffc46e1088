import { add, type Resources } from "@nodeyard/driver";
import type { NodeReport } from "@nodeyard/sliver-protocol";
import { promised } from "./amounts.ts";
import { FREE } from "./lending/index.ts";

/** Somebody who is about to ask machines what they have, and to choose one by the answers. */
export type Look = symbol;

interface OnItsWay {
  readonly machine: string;
  readonly name: string;
  readonly need: Resources;
  /** Once it is placed: who asked before that, and so may have been told what was before. */
  unseenBy?: Set<Look>;
}

/**
 * Slivers that are being placed and are in no document yet. One that was placed counts on for everybody whose question to the machine
 * is older than that, however late its answer is read.
 */
export class Placing {
  readonly #looks = new Set<Look>();
  readonly #onTheirWay = new Set<OnItsWay>();

  /** To be called before the machines are asked. */
  begin(): Look {
    const look = Symbol("look");
    this.#looks.add(look);
    return look;
  }

  /** To be called when the choice is made, and counted by `add`. */
  end(look: Look): void {
    this.#looks.delete(look);
    for (const one of this.#onTheirWay) {
      one.unseenBy?.delete(look);
      this.#forget(one);
    }
  }

  /** Counts a sliver on a machine until what is returned is called: its document was taken, or will not be. */
  add(machine: string, name: string, need: Resources): () => void {
    const one: OnItsWay = { machine, name, need };
    this.#onTheirWay.add(one);
    return () => {
      one.unseenBy ??= new Set(this.#looks);
      this.#forget(one);
    };
  }

  /** What is promised on a machine: by its report, for which `look` asked, and to those that are on their way into it. */
  used({ slivers, node }: NodeReport, look: Look): Resources {
    const listed = new Set(slivers.map(({ name }) => name));
    let sum: Resources = {};
    for (const { name, rspec } of slivers) if (name !== FREE) sum = add(sum, promised(rspec));
    for (const { machine, name, need, unseenBy } of this.#onTheirWay) {
      const counts = machine === node && !listed.has(name) && unseenBy?.has(look) !== false;
      if (counts) sum = add(sum, need);
    }
    return sum;
  }

  #forget(one: OnItsWay): void {
    if (one.unseenBy?.size === 0) this.#onTheirWay.delete(one);
  }
}
