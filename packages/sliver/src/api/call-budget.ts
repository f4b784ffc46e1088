import { type Clock, messageOf } from "@nodeyard/runtime";
import type { Caller } from "../core/permit.ts";
import type { Audit } from "./dispatch.ts";

/** Calls that an account may make at once, and per second in the long run. A connection counts as its first call. */
const BURST = 100;
const PER_SECOND = 10;
/** Bytes of a body that count as a call more: reading and parsing them costs as much. */
const BYTES = 16_384;
/** Milliseconds after which refusals become one line of the audit log. */
const PERIOD = 10_000;
/** Refusals in a period that make a flood. Each still costs the daemon an accepted connection, and often an answer. */
const FLOOD = 100;

/** What a budget needs. */
export interface CallBudgetOptions {
  readonly clock: Clock;
  readonly audit: Audit;
  /** An account became one that floods, or ceased to be one. */
  readonly onFlood: () => void;
  readonly onFailure: (line: string) => void;
}

/**
 * What accounts may ask of the manager, charged before anything is read or parsed: code in a sliver is hostile, and each call costs time
 * of a daemon that all slivers share, and a line of the audit log. Root and the launcher never have to wait.
 */
export class CallBudget {
  readonly #options: CallBudgetOptions;
  readonly #left = new Map<string, { calls: number; at: number }>();
  readonly #refused = new Map<string, { readonly caller: Caller; count: number }>();

  constructor(options: CallBudgetOptions) {
    this.#options = options;
  }

  /** False when this account has to wait; that is counted. */
  spend(caller: Caller, calls: number, bytes = 0): boolean {
    if (isTrusted(caller)) return true;
    const key = keyOf(caller);
    const at = this.#options.clock.monotonic();
    const last = this.#left.get(key) ?? { calls: BURST, at };
    const left = Math.min(BURST, last.calls + ((at - last.at) / 1000) * PER_SECOND);
    const cost = calls + bytes / BYTES;
    const enough = left >= cost;
    if (this.#left.size > 10_000) this.#left.clear();
    this.#left.set(key, { calls: enough ? left - cost : left, at });
    if (!enough) this.refuse(caller);
    return enough;
  }

  /** Counts what was refused for another reason. */
  refuse(caller: Caller): void {
    if (isTrusted(caller)) return;
    const { clock, onFlood } = this.#options;
    if (this.#refused.size === 0) clock.setTimer(PERIOD, () => this.flush(), { background: true });
    const refused = this.#refused.get(keyOf(caller)) ?? { caller, count: 0 };
    refused.count += 1;
    this.#refused.set(keyOf(caller), refused);
    if (refused.count === FLOOD) onFlood();
  }

  /** Whether nothing more should be accepted of this account until `onFlood` is called again. */
  floods(caller: Caller): boolean {
    return (this.#refused.get(keyOf(caller))?.count ?? 0) >= FLOOD;
  }

  /** Writes one line for each account that was refused something. */
  flush(): void {
    const { clock, audit, onFlood, onFailure } = this.#options;
    const all = [...this.#refused.values()];
    this.#refused.clear();
    const at = new Date(clock.now()).toISOString();
    try {
      for (const { caller, count } of all)
        audit({ at, account: caller.account, role: caller.role, verdict: "refused", count });
    } catch (error) {
      onFailure(`refused calls of ${all.length} accounts are not in the audit log: ${messageOf(error)}`);
    }
    if (all.some(({ count }) => count >= FLOOD)) onFlood();
  }
}

function isTrusted({ role }: Caller): boolean {
  return role === "root" || role === "control";
}

/** A sliver may be called what strangers are called here. */
function keyOf({ account, role }: Caller): string {
  return `${role} ${account}`;
}
