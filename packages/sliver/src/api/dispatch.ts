import { type Clock, messageOf } from "@nodeyard/runtime";
import { type Caller, permitTarget, permitWithoutTarget } from "../core/permit.ts";
import type { WireProfile } from "../core/profiles.ts";
import type { SliverRecord } from "../core/record.ts";
import type { Manager } from "../manager/manager.ts";
import {
  DENIED,
  type Dialect,
  Fault,
  type Method,
  UNEXPECTED,
  UNKNOWN_METHOD,
  WRONG_COUNT,
  wrongArgument,
} from "./method.ts";
import { METHODS, namesIn } from "./methods/index.ts";

/** One decision about one call; a line of the audit log. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly at: string;
  readonly account: string;
  readonly role: string;
  readonly dialect: string;
  readonly method: string;
  readonly target?: string;
  readonly verdict: "allowed" | "denied" | "fault";
  /** Of the fault. */
  readonly code?: number;
  readonly message?: string;
}

/** Writes one line of the audit log. A call whose line cannot be written is not made. */
export type Audit = (entry: AuditEntry) => void;

/** Calls that an account may make at once, and per second in the long run. */
const BURST = 100;
const PER_SECOND = 10;

/** What a sliver may ask of the manager: code in it is hostile, and each call costs a line of the audit log. */
class CallBudget {
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

/** One call, as a codec reads it. */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** Names in log lines and faults are no longer than this. */
const SHOWN = 64;

/** Decides about calls and carries them out. Whatever a dialect or a method throws leaves here as a Fault. */
export class Dispatcher {
  readonly #manager: Manager;
  readonly #profile: WireProfile;
  readonly #audit: Audit;
  readonly #budget: CallBudget;

  constructor(manager: Manager, profile: WireProfile, audit: Audit) {
    this.#manager = manager;
    this.#profile = profile;
    this.#audit = audit;
    this.#budget = new CallBudget(manager.options.clock);
  }

  /** Checks in the order of the old manager, except that permission comes before existence. Rejects with Fault. */
  async call(dialect: Dialect, caller: Caller, { method: name, params }: Call): Promise<unknown> {
    // Without a line in the audit log, which this is to keep from filling up.
    if (!this.#budget.spend(caller)) throw new Fault(UNEXPECTED, "too many calls; wait a second");
    const note = (verdict: AuditEntry["verdict"], fault?: Fault) =>
      this.#note(dialect, caller, name, params, verdict, fault);
    // A dialect may show what a method throws otherwise than what is thrown before it runs.
    let runs = false;
    try {
      const method = methodOf(dialect, name);
      const arity = method.params.length;
      if (params.length !== arity)
        throw new Fault(WRONG_COUNT, `Invalid argument count: got ${params.length}, expecting ${arity}.`);
      if (!this.#permits(caller, name, method, params[0])) throw dialect.denied(caller);
      note("allowed");
      const context = { manager: this.#manager, profile: this.#profile, dialect, caller };
      const record = method.about && this.#target(params[0]);
      runs = true;
      return await (record === undefined
        ? method.run!(context, params)
        : method.about!(context, record, params.slice(1)));
    } catch (error) {
      const fault = faultOf(error);
      const out = runs ? dialect.inner(fault) : fault;
      note(fault.code === DENIED ? "denied" : "fault", out);
      throw out;
    }
  }

  #permits(caller: Caller, name: string, { about }: Method, target: unknown): boolean {
    if (about === undefined) return permitWithoutTarget(caller, name);
    const sliver = typeof target === "string" ? target : "";
    return permitTarget(caller, name, sliver, this.#manager.state.records.get(sliver));
  }

  #target(target: unknown): SliverRecord {
    const record = typeof target === "string" ? this.#manager.state.records.get(target) : undefined;
    if (record?.kind !== "sliver")
      throw wrongArgument(`the first argument must be a sliver name, not ${shown(target)}`);
    return record;
  }

  #note(
    dialect: Dialect,
    { account, role }: Caller,
    method: string,
    params: readonly unknown[],
    verdict: AuditEntry["verdict"],
    fault?: Fault,
  ): void {
    const target = METHODS.get(method)?.about === undefined ? {} : { target: shown(params[0]) };
    const why = fault === undefined ? {} : { code: fault.code, message: fault.message.slice(0, 200) };
    const at = new Date(this.#manager.options.clock.now()).toISOString();
    const entry = { at, account, role, dialect: dialect.name, method: method.slice(0, SHOWN), ...target };
    this.#audit({ ...entry, verdict, ...why });
  }
}

function faultOf(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  const name = thrown instanceof Error ? thrown.name : typeof thrown;
  return new Fault(UNEXPECTED, `${name}:${messageOf(thrown)}`);
}

function methodOf(dialect: Dialect, name: string): Method {
  const names = namesIn(dialect);
  if (names.includes(name)) return METHODS.get(name)!;
  const choices = names.join(", ");
  throw new Fault(UNKNOWN_METHOD, `Invalid API method ${name.slice(0, SHOWN)}. Valid choices are ${choices}`);
}

function shown(value: unknown): string {
  return typeof value === "string" ? value.slice(0, SHOWN) : typeof value;
}
