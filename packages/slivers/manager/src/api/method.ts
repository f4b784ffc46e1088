import type { Loan, LoanStatus, Rspec } from "@nodeyard/sliver-protocol";
import type { Caller } from "../core/permit.ts";
import type { ProfileName, WireProfile } from "../core/profiles.ts";
import type { SliverRecord } from "../core/record.ts";
import type { Manager } from "../manager/manager.ts";

/** The answer to a failed call. Codes are those of the old manager (docs/contract/slivers.md, "Calls and faults"). */
export class Fault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "Fault";
    this.code = code;
  }
}

/** Any failure without a code of its own. */
export const UNEXPECTED = 1;
/** The dialect has no such method. */
export const UNKNOWN_METHOD = 100;
/** Wrong number of arguments. */
export const WRONG_COUNT = 101;
/** Invalid argument. */
export const WRONG_ARGUMENT = 102;
/** The method ran and failed. In `v2` all faults within a method have this code. */
export const FAILED_CALL = 104;
/** The caller may not call this method on this sliver. */
export const DENIED = 108;

/** Makes fault 102 for one argument. */
export function wrongArgument(what: string): Fault {
  return new Fault(WRONG_ARGUMENT, `Invalid argument: ${what}`);
}

/** The form in which callers of one kind speak: names, units, values and faults. All dialects use the same methods. */
export interface Dialect {
  readonly name: ProfileName | "native";
  /** True: a call returns when the machine has applied the change, and reports failures. False: it returns when the change is durable. */
  readonly waits: boolean;
  /** True: Create and Destroy of a sliver that is not delegated are errors. False: they have no effect. */
  readonly strict: boolean;
  help(docs: readonly { readonly name: string; readonly doc: string }[]): string;
  rspec(rspec: Rspec, record: SliverRecord): unknown;
  /** Throws Fault 102. */
  readLoans(value: unknown): Loan[];
  writeLoans(loans: readonly LoanStatus[]): unknown;
  /** The answer of SetLoans. */
  loansSet(loans: readonly LoanStatus[]): unknown;
  record(record: SliverRecord, effective: Rspec, loans: readonly LoanStatus[]): unknown;
  denied(caller: Caller): Fault;
  /** Translates a fault within a method. */
  inner(fault: Fault): Fault;
}

/** The environment of a method. */
export interface Context {
  readonly manager: Manager;
  /** The profile whose names PLC's documents use. */
  readonly profile: WireProfile;
  readonly dialect: Dialect;
  readonly caller: Caller;
}

/** The sliver that makes the call, of which only one change may wait; undefined for callers without that limit. */
export function placeOf({ caller: { account, role } }: Pick<Context, "caller">): string | undefined {
  return role === "sliver" ? account : undefined;
}

/** A method of the API. It has exactly one of `run` and `about`; their errors become faults. */
export interface Method {
  /** The first dialect that has it. Later ones in the order `r0`, `v2`, `native` have it too. */
  readonly since: Dialect["name"];
  /** Names of the arguments. */
  readonly params: readonly string[];
  /** Description, for Help. */
  readonly doc: string;
  /** It changes a sliver: the change is written to the disk, and the whole machine is looked at. */
  readonly changes?: true;
  readonly run?: (context: Context, params: readonly unknown[]) => unknown;
  /** For methods on one sliver, whose name is their first argument; `params` are the other arguments. */
  readonly about?: (context: Context, record: SliverRecord, params: readonly unknown[]) => unknown;
}
