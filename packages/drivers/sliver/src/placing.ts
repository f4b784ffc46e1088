import { add, type Resources } from "@nodeyard/driver";
import type { NodeReport } from "@nodeyard/sliver-protocol";
import { guaranteesOf } from "./amounts.ts";
import { FREE } from "./lending/index.ts";

/** A caller that asks machines for their state and then chooses one by the answers. */
export type Look = symbol;

/** A sliver from its choice of a machine until every report shows it. */
interface OnItsWay {
  readonly machine: string;
  readonly name: string;
  readonly need: Resources;
  /** Set once the sliver is in a document: the callers that asked before that, and so may have received an older state. */
  unseenBy?: Set<Look>;
}

/**
 * Slivers that are being placed and may not be in a report yet. A placed sliver keeps counting for every caller whose request to the
 * machine is older than its placement, however late the answer arrives. Without this, two callers could use the same capacity (rule 9).
 */
export class Placing {
  readonly #looks = new Set<Look>();
  readonly #onTheirWay = new Set<OnItsWay>();

  /** Call before the machines are asked. */
  begin(): Look {
    const look = Symbol("look");
    this.#looks.add(look);
    return look;
  }

  /** Call when the choice has been made and counted by `add`. */
  end(look: Look): void {
    this.#looks.delete(look);
    for (const one of this.#onTheirWay) {
      one.unseenBy?.delete(look);
      this.#forget(one);
    }
  }

  /** Counts a sliver on a machine until the returned function is called, when the machine has taken or refused its document. */
  add(machine: string, name: string, need: Resources): () => void {
    const one: OnItsWay = { machine, name, need };
    this.#onTheirWay.add(one);
    return () => {
      one.unseenBy ??= new Set(this.#looks);
      this.#forget(one);
    };
  }

  /** Guaranteed amounts on a machine: those of its report, which `look` requested, and those of slivers being placed. */
  used({ slivers, node }: NodeReport, look: Look): Resources {
    const listed = new Set(slivers.map(({ name }) => name));
    let sum: Resources = {};
    for (const one of slivers) if (one.name !== FREE) sum = add(sum, guaranteesOf(one));
    for (const { machine, name, need, unseenBy } of this.#onTheirWay) {
      const counts = machine === node && !listed.has(name) && unseenBy?.has(look) !== false;
      if (counts) sum = add(sum, need);
    }
    return sum;
  }

  /** A sliver goes when no caller is left that could have an older state. */
  #forget(one: OnItsWay): void {
    if (one.unseenBy?.size === 0) this.#onTheirWay.delete(one);
  }
}
