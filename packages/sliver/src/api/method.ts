import type { Loan, LoanStatus, Rspec } from "@nodeyard/sliver-protocol";
import type { Caller } from "../core/permit.ts";
import type { ProfileName, WireProfile } from "../core/profiles.ts";
import type { SliverRecord } from "../core/record.ts";
import type { Manager } from "../manager/manager.ts";

/** What a caller gets instead of a result. Codes are those of the old manager (docs/contract/slivers.md, "Calls and faults"). */
export class Fault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "Fault";
    this.code = code;
  }
}

/** Any failure that has no code of its own. */
export const UNEXPECTED = 1;
/** The dialect has no such method. */
export const UNKNOWN_METHOD = 100;
/** Not the number of arguments that the method has. */
export const WRONG_COUNT = 101;
/** An argument that the method does not accept. */
export const WRONG_ARGUMENT = 102;
/** The method ran and failed; in `v2` every fault from within a method. */
export const FAILED_CALL = 104;
/** The caller may not call the method on that sliver. */
export const DENIED = 108;

/** Fault 102 for one argument. */
export function wrongArgument(what: string): Fault {
  return new Fault(WRONG_ARGUMENT, `Invalid argument: ${what}`);
}

/** How callers of one kind speak: names, units, shapes and faults. The methods behind are the same for all. */
export interface Dialect {
  readonly name: ProfileName | "native";
  /** True: calls return when the machine has followed, and say what failed. False: when the change is durable. */
  readonly waits: boolean;
  /** True: Create and Destroy of a sliver that is not delegated are an error. False: they do nothing. */
  readonly strict: boolean;
  help(docs: readonly { readonly name: string; readonly doc: string }[]): string;
  rspec(rspec: Rspec, record: SliverRecord): unknown;
  /** Throws Fault 102. */
  readLoans(value: unknown): Loan[];
  writeLoans(loans: readonly LoanStatus[]): unknown;
  /** What SetLoans answers. */
  loansSet(loans: readonly LoanStatus[]): unknown;
  record(record: SliverRecord, effective: Rspec, loans: readonly LoanStatus[]): unknown;
  denied(caller: Caller): Fault;
  /** A fault from within a method, as it goes out. */
  inner(fault: Fault): Fault;
}

/** What a method has to work with. */
export interface Context {
  readonly manager: Manager;
  /** The profile whose names documents of PLC use. */
  readonly profile: WireProfile;
  readonly dialect: Dialect;
  readonly caller: Caller;
}

/** The sliver that asks for a change, of which one may wait; undefined for those with places of their own. */
export function placeOf({ caller: { account, role } }: Pick<Context, "caller">): string | undefined {
  return role === "sliver" ? account : undefined;
}

/** One method of the vocabulary; it has exactly one of `run` and `about`, and what that throws becomes a fault. */
export interface Method {
  /** The first dialect that has it; those after it in `r0`, `v2`, `native` have it too. */
  readonly since: Dialect["name"];
  /** Names of the arguments. */
  readonly params: readonly string[];
  /** What it does, for Help. */
  readonly doc: string;
  readonly run?: (context: Context, params: readonly unknown[]) => unknown;
  /** For methods about one sliver, which is their first argument; `params` are the others. */
  readonly about?: (context: Context, record: SliverRecord, params: readonly unknown[]) => unknown;
}
