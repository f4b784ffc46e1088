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

/** One decision about one call, or the sum of what an account was refused before it was read; a line of the audit log. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly at: string;
  readonly account: string;
  readonly role: string;
  /** Absent of sums. */
  readonly dialect?: string;
  /** Empty for what is no call. */
  readonly method?: string;
  readonly target?: string;
  readonly verdict: "allowed" | "denied" | "fault" | "refused";
  /** Connections and calls, of sums. */
  readonly count?: number;
  /** Of the fault. */
  readonly code?: number;
  readonly message?: string;
}

/** Writes one line of the audit log. A call whose line cannot be written is not made. */
export type Audit = (entry: AuditEntry) => void;

/** Names in log lines and faults are no longer than this. */
const SHOWN = 64;

/** Decides about calls and carries them out. Whatever a dialect or a method throws leaves here as a Fault. */
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
   * Carries out the call that `read` returns. Checks in the order of the old manager, except that permission comes before existence.
   * Rejects with Fault.
   */
  async call(dialect: Dialect, caller: Caller, read: () => Call): Promise<unknown> {
    let call: Call = { method: "", params: [] };
    const note = (verdict: AuditEntry["verdict"], fault?: Fault) =>
      this.#note(dialect, caller, call, verdict, fault);
    // A dialect may show what a method throws otherwise than what is thrown before it runs.
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
