import type { Clock } from "@nodeyard/runtime";
import type { Caller } from "../core/index.ts";

/** Calls that an account may make at once, and per second in the long run. */
const BURST = 100;
const PER_SECOND = 10;

/** What a sliver may ask of the manager: code in it is hostile, and each call costs a line of the audit log. */
export class CallBudget {
  readonly #clock: Clock;
  readonly #left = new Map<string, { calls: number; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False when this account has to wait. Root and the launcher never have to. */
  spend({ account, role }: Caller): boolean {
    if (role === "root" || role === "control") return true;
    const now = this.#clock.monotonic();
    const last = this.#left.get(account) ?? { calls: BURST, at: now };
    const calls = Math.min(BURST, last.calls + ((now - last.at) / 1000) * PER_SECOND);
    if (this.#left.size > 10_000) this.#left.clear();
    this.#left.set(account, { calls: calls >= 1 ? calls - 1 : calls, at: now });
    return calls >= 1;
  }
}
