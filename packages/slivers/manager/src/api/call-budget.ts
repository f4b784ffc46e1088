import { type Clock, messageOf } from "@nodeyard/runtime";
import { type Caller, isTrusted } from "../core/permit.ts";
import type { Audit } from "./dispatch.ts";

/** Calls that an account may make at once (BURST) and per second in the long run. A connection counts as its first call. */
const BURST = 100;
const PER_SECOND = 10;
/** This many bytes of a body count as one more call, because reading and parsing them costs as much. */
const BYTES = 16_384;
/** A change costs as much as this many calls more. */
const CHANGE = 19;
/** After this many milliseconds, refusals are written as one line of the audit log. */
const PERIOD = 10_000;
/** Refusals within a period that count as a flood. Each still costs the daemon an accepted connection, and often an answer. */
const FLOOD = 100;

/** Options of a budget. */
export interface CallBudgetOptions {
  readonly clock: Clock;
  readonly audit: Audit;
  /** Called when an account starts or stops flooding. */
  readonly onFlood: () => void;
  readonly onFailure: (line: string) => void;
}

/**
 * Limits the calls of accounts. A call is charged before anything is read or parsed, because code in a sliver is hostile (rule 11) and each
 * call costs time of the daemon that all slivers share, and a line of the audit log. Root and the launcher have no limit.
 */
export class CallBudget {
  readonly #options: CallBudgetOptions;
  readonly #left = new Map<string, { calls: number; at: number }>();
  readonly #refused = new Map<string, { readonly caller: Caller; count: number }>();

  constructor(options: CallBudgetOptions) {
    this.#options = options;
  }

  /** Charges calls. False when the account has used up its budget; the refusal is counted. */
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

  /**
   * Charges what a change by a sliver costs beside its call: a write to the disk, a look at the whole machine. One of a node's controller,
   * which acts for many, is a call like others.
   */
  spendChange(caller: Caller): boolean {
    return caller.role !== "sliver" || this.spend(caller, CHANGE);
  }

  /** Counts a refusal for another reason. */
  refuse(caller: Caller): void {
    if (isTrusted(caller)) return;
    const { clock, onFlood } = this.#options;
    if (this.#refused.size === 0) clock.setTimer(PERIOD, () => this.flush(), { background: true });
    const refused = this.#refused.get(keyOf(caller)) ?? { caller, count: 0 };
    refused.count += 1;
    this.#refused.set(keyOf(caller), refused);
    if (refused.count === FLOOD) onFlood();
  }

  /** Whether the account floods: until `onFlood` is called again, no connection of it should be accepted. */
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

/** The key of an account. It includes the role, because a sliver may have the same name as another kind of account. */
function keyOf({ account, role }: Caller): string {
  return `${role} ${account}`;
}
