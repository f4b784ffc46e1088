import { messageOf } from "@nodeyard/runtime";
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
import type { Call } from "./parse-request.ts";

/** A line of the audit log: the decision about one call, or the sum of refusals before a call was read. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly at: string;
  readonly account: string;
  readonly role: string;
  /** Absent for sums. */
  readonly dialect?: string;
  /** Empty when the request is no call. */
  readonly method?: string;
  readonly target?: string;
  readonly verdict: "allowed" | "denied" | "fault" | "refused";
  /** Number of connections and calls, for sums. */
  readonly count?: number;
  /** Code of the fault. */
  readonly code?: number;
  readonly message?: string;
}

/** Writes a line of the audit log. When it throws, the call is not made. */
export type Audit = (entry: AuditEntry) => void;

/** Longest name in log lines and faults. */
const SHOWN = 64;

/**
 * Decides about calls and runs them. Every decision is written to the audit log before it takes effect. All errors of dialects and
 * methods leave as Fault.
 */
export class Dispatcher {
  readonly #manager: Manager;
  readonly #profile: WireProfile;
  readonly #audit: Audit;

  constructor(manager: Manager, profile: WireProfile, audit: Audit) {
    this.#manager = manager;
    this.#profile = profile;
    this.#audit = audit;
  }

  /**
   * Runs the call that `read` returns. The checks have the order of the old manager, except that permission is checked before existence, so
   * that callers cannot find out which names exist. Rejects with Fault.
   */
  async call(dialect: Dialect, caller: Caller, read: () => Call): Promise<unknown> {
    let call: Call = { method: "", params: [] };
    const note = (verdict: AuditEntry["verdict"], fault?: Fault) =>
      this.#note(dialect, caller, call, verdict, fault);
    // Dialects translate errors of a running method differently from errors before it runs.
    let runs = false;
    try {
      call = read();
      const { method: name, params } = call;
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

  /** Whether the caller may make this call, by its role and by what the sliver delegates. */
  #permits(caller: Caller, name: string, { about }: Method, target: unknown): boolean {
    if (about === undefined) return permitWithoutTarget(caller, name);
    const sliver = typeof target === "string" ? target : "";
    return permitTarget(caller, name, sliver, this.#manager.state.records.get(sliver));
  }

  /** Throws a fault for a name without a sliver. Only callers that may know it come so far. */
  #target(target: unknown): SliverRecord {
    const record = typeof target === "string" ? this.#manager.state.records.get(target) : undefined;
    if (record?.kind !== "sliver")
      throw wrongArgument(`the first argument must be a sliver name, not ${shown(target)}`);
    return record;
  }

  #note(
    dialect: Dialect,
    { account, role }: Caller,
    { method, params }: Call,
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

/** An error without a code becomes UNEXPECTED, with its class in the text. */
function faultOf(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  const name = thrown instanceof Error ? thrown.name : typeof thrown;
  return new Fault(UNEXPECTED, `${name}:${messageOf(thrown)}`);
}

/** Throws fault 100, which lists the methods of the dialect. */
function methodOf(dialect: Dialect, name: string): Method {
  const names = namesIn(dialect);
  if (names.includes(name)) return METHODS.get(name)!;
  const choices = names.join(", ");
  throw new Fault(UNKNOWN_METHOD, `Invalid API method ${name.slice(0, SHOWN)}. Valid choices are ${choices}`);
}

/** The words of a caller may be long or no text, and go to a log. */
function shown(value: unknown): string {
  return typeof value === "string" ? value.slice(0, SHOWN) : typeof value;
}
