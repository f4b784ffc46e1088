import { type CallName, DriverError, type EndedCall } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import type { VerdictCode } from "@nodeyard/scheduler";

/** Why an open provider does not work now. */
interface Trouble {
  readonly code: VerdictCode;
  /** Tree time, milliseconds, of the first failure in a row. */
  readonly since: number;
  /** Of the last one. */
  readonly tried: number;
  readonly error: string;
}

/** Questions that only the cloud's API can fail. A launch or deletion can fail for its machine, too. */
const READS: ReadonlySet<CallName> = new Set(["list", "find", "quota"]);
/** Kinds by which the API does not answer or does not let the provider in. */
const DOWN: ReadonlySet<string> = new Set(["access", "transient", "timeout"]);

/**
 * What the calls of an open provider say about its cloud: a question that fails, or credentials that are refused in any call, is a trouble
 * until a call of the same name has succeeded. A launch or deletion that failed otherwise only makes the sweep ask at once. Every call
 * passes here, so an outage shows wherever it is met first.
 */
export class Troubles {
  readonly #now: () => number;
  readonly #byCall = new Map<CallName, Trouble>();
  /** Parts that do not work while the provider serves: why, and since when (tree time, milliseconds). */
  readonly #impaired = new Map<string, { readonly since: number; readonly error: string }>();
  /** Called when the trouble that is shown changed, also by another failure; `isOther`: the first one came, or the last one went. */
  onChange: (isOther: boolean) => void = () => {};
  /** Called when a launch or deletion failed and the cloud may be the reason. */
  onDoubt: () => void = () => {};

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The oldest that lasts. */
  get first(): Trouble | undefined {
    return this.#byCall.values().next().value;
  }

  /** The part that has been without work for the longest time. */
  get impaired(): { readonly since: number; readonly error: string } | undefined {
    return this.#impaired.values().next().value;
  }

  /** Takes what a driver says of a part of its provider; null: it works. */
  readonly part = (name: string, why: string | null): void => {
    const before = this.#impaired.get(name);
    if (why === null) this.#impaired.delete(name);
    else
      this.#impaired.set(name, {
        since: before?.since ?? Math.round(this.#now()),
        error: `${name}: ${why}`,
      });
    if (before?.error !== this.#impaired.get(name)?.error) this.onChange(true);
  };

  /** Takes the end of a call. Of a generator only its end shows that it works: the steps before a refused one may be allowed. */
  note({ call, result, error, more }: EndedCall): void {
    if (result === "ok") {
      if (!more) this.#set(call, undefined);
      return;
    }
    const { code = "", kind = "" } = (error ?? {}) as { readonly code?: string; readonly kind?: string };
    const isSilent = code === "launcher.provider_silent";
    // Its caller gave up, which says nothing of the cloud.
    if (result === "aborted" && !isSilent) return;
    if (!isSilent && !(error instanceof DriverError && DOWN.has(kind))) return;
    if (!READS.has(call) && kind !== "access") return this.onDoubt();
    const known = this.#byCall.get(call);
    const tried = Math.round(this.#now());
    const why = kind === "access" ? "provider.configuration" : "provider.failing";
    this.#set(call, { code: why, since: known?.since ?? tried, tried, error: messageOf(error) });
  }

  #set(call: CallName, trouble: Trouble | undefined): void {
    const before = this.first;
    if (trouble === undefined) this.#byCall.delete(call);
    else this.#byCall.set(call, trouble);
    if (before !== this.first) this.onChange((before === undefined) !== (this.first === undefined));
  }
}
