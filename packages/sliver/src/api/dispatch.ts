import { messageOf } from "@nodeyard/runtime";
import { type Caller, permitTarget, permitWithoutTarget, type SliverRecord } from "../core/index.ts";
import type { Manager } from "../manager/index.ts";
import type { WireProfile } from "../profiles/index.ts";
import type { Audit } from "./audit.ts";
import { CallBudget } from "./call-budget.ts";
import { type Context, isTargetMethod, type Method, type TargetMethod } from "./context.ts";
import type { Dialect } from "./dialects/index.ts";
import { DENIED, Fault, UNEXPECTED, UNKNOWN_METHOD, WRONG_COUNT, wrongArgument } from "./fault.ts";
import { METHODS } from "./methods/index.ts";

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

  /** In the order of the old manager, but for permission, which comes before existence. Rejects with Fault. */
  async call(dialect: Dialect, caller: Caller, { method: name, params }: Call): Promise<unknown> {
    // Not even noted: that would be what it is to prevent.
    if (!this.#budget.spend(caller)) throw new Fault(UNEXPECTED, "too many calls; wait a second");
    const note = (verdict: "allowed" | "denied" | "fault", fault?: Fault) =>
      this.#note(dialect, caller, name, params, verdict, fault);
    let allowed = false;
    try {
      const method = methodOf(dialect, name);
      if (params.length !== method.arity)
        throw new Fault(
          WRONG_COUNT,
          `Invalid argument count: got ${params.length}, expecting ${method.arity}.`,
        );
      this.#permit(dialect, caller, method, params[0]);
      allowed = true;
      note("allowed");
      return await this.#run(method, this.#context(dialect, caller), params);
    } catch (error) {
      const fault = faultOf(error);
      const out = allowed && isInner(error) ? dialect.inner(fault) : fault;
      note(fault.code === DENIED ? "denied" : "fault", out);
      throw out;
    }
  }

  #permit(dialect: Dialect, caller: Caller, method: Method | TargetMethod, target: unknown): void {
    const name = typeof target === "string" ? target : "";
    const permitted = isTargetMethod(method)
      ? permitTarget(caller, method.name, name, this.#manager.state.records.get(name))
      : permitWithoutTarget(caller, method.name);
    if (!permitted) throw dialect.denied(caller);
  }

  async #run(method: Method | TargetMethod, context: Context, params: readonly unknown[]): Promise<unknown> {
    if (!isTargetMethod(method)) return await inner(() => method.run(context, params));
    const record = this.#target(params[0]);
    return await inner(() => method.run(context, record, params.slice(1)));
  }

  #target(target: unknown): SliverRecord {
    const record = typeof target === "string" ? this.#manager.state.records.get(target) : undefined;
    if (record?.kind !== "sliver")
      throw wrongArgument(`the first argument must be a sliver name, not ${shown(target)}`);
    return record;
  }

  #context(dialect: Dialect, caller: Caller): Context {
    const docs = dialect.methods.map((name) => ({ name, doc: METHODS.get(name)!.doc }));
    return { manager: this.#manager, profile: this.#profile, dialect, caller, docs };
  }

  #note(
    dialect: Dialect,
    { account, role }: Caller,
    method: string,
    params: readonly unknown[],
    verdict: "allowed" | "denied" | "fault",
    fault?: Fault,
  ): void {
    const known = METHODS.get(method);
    const target = known !== undefined && isTargetMethod(known) ? { target: shown(params[0]) } : {};
    const why = fault === undefined ? {} : { code: fault.code, message: fault.message.slice(0, 200) };
    const at = new Date(this.#manager.options.clock.now()).toISOString();
    const entry = { at, account, role, dialect: dialect.name, method: method.slice(0, SHOWN), ...target };
    this.#audit({ ...entry, verdict, ...why });
  }
}

/** Marks what was thrown within a method, which a dialect may show otherwise than what was thrown before it. */
class Inner extends Error {}

async function inner(body: () => unknown): Promise<unknown> {
  try {
    return await body();
  } catch (cause) {
    throw new Inner("", { cause });
  }
}

function isInner(error: unknown): boolean {
  return error instanceof Inner;
}

function faultOf(error: unknown): Fault {
  const thrown = error instanceof Inner ? error.cause : error;
  if (thrown instanceof Fault) return thrown;
  const name = thrown instanceof Error ? thrown.name : typeof thrown;
  return new Fault(UNEXPECTED, `${name}:${messageOf(thrown)}`);
}

function methodOf(dialect: Dialect, name: string): Method | TargetMethod {
  const method = dialect.methods.includes(name) ? METHODS.get(name) : undefined;
  if (method !== undefined) return method;
  const choices = [...dialect.methods].sort().join(", ");
  throw new Fault(UNKNOWN_METHOD, `Invalid API method ${name.slice(0, SHOWN)}. Valid choices are ${choices}`);
}

function shown(value: unknown): string {
  return typeof value === "string" ? value.slice(0, SHOWN) : typeof value;
}
