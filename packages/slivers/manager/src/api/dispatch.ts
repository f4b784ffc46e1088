import { messageOf } from "@nodeyard/runtime";
import { type Caller, permitTarget, permitWithoutTarget } from "../core/permit.ts";

import type { SliverRecord } from "../core/record.ts";
import type { Manager } from "../manager/manager.ts";
import {
  type Context,
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

/** What a call needs beside its caller. */
export type CallContext = Omit<Context, "caller"> & { readonly audit: Audit };

/**
 * Decides about the call that `read` returns, and runs it. Every decision is written to the audit log before it takes effect. The checks
 * have the order of the old manager, except that permission is checked before existence, so that callers cannot find out which names exist.
 * All errors of dialects and methods leave as Fault.
 */
export async function dispatch(
  { audit, ...context }: CallContext,
  caller: Caller,
  read: () => Call,
): Promise<unknown> {
  const { manager, dialect } = context;
  let call: Call = { method: "", params: [] };
  const note = (verdict: AuditEntry["verdict"], fault?: Fault) => {
    const { method, params } = call;
    const target = METHODS.get(method)?.about === undefined ? {} : { target: shown(params[0]) };
    const why = fault === undefined ? {} : { code: fault.code, message: fault.message.slice(0, 200) };
    const at = new Date(manager.options.clock.now()).toISOString();
    const { account, role } = caller;
    const entry = { at, account, role, dialect: dialect.name, method: method.slice(0, SHOWN), ...target };
    audit({ ...entry, verdict, ...why });
  };
  // Dialects translate errors of a running method differently from errors before it runs.
  let runs = false;
  try {
    call = read();
    const { method: name, params } = call;
    const method = methodOf(dialect, name);
    const arity = method.params.length;
    if (params.length !== arity)
      throw new Fault(WRONG_COUNT, `Invalid argument count: got ${params.length}, expecting ${arity}.`);
    if (!permits(manager, caller, name, method, params[0])) throw dialect.denied(caller);
    note("allowed");
    const record = method.about && targetOf(manager, params[0]);
    runs = true;
    return await (record === undefined
      ? method.run!({ ...context, caller }, params)
      : method.about!({ ...context, caller }, record, params.slice(1)));
  } catch (error) {
    const fault = faultOf(error);
    const out = runs ? dialect.inner(fault) : fault;
    note(fault.code === DENIED ? "denied" : "fault", out);
    throw out;
  }
}

/** Whether the caller may make this call, by its role and by what the sliver delegates. */
function permits({ state }: Manager, caller: Caller, name: string, { about }: Method, target: unknown) {
  if (about === undefined) return permitWithoutTarget(caller, name);
  const sliver = typeof target === "string" ? target : "";
  return permitTarget(caller, name, sliver, state.records.get(sliver));
}

/** Throws a fault for a name without a sliver. Only callers that may know it come so far. */
function targetOf({ state }: Manager, target: unknown): SliverRecord {
  const record = typeof target === "string" ? state.records.get(target) : undefined;
  if (record?.kind !== "sliver")
    throw wrongArgument(`the first argument must be a sliver name, not ${shown(target)}`);
  return record;
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
