import type { Loan, LoanStatus, Rspec } from "@nodeyard/sliver-protocol";
import type { Caller, SliverRecord } from "../../core/index.ts";
import type { Fault } from "../fault.ts";

/** How callers of one kind speak: names, units, shapes and faults. The methods behind are the same for all. */
export interface Dialect {
  readonly name: "r0" | "v2" | "native";
  readonly methods: readonly string[];
  /** Calls return when the machine has followed, and say what failed; else when the change is durable. */
  readonly waits: boolean;
  /** Create and Destroy of what is not delegated: an error, or silently nothing. */
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
