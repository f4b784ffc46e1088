import type { KeySet } from "@nodeyard/sliver-protocol";
import type { Caller, SliverRecord } from "../core/index.ts";
import type { Manager } from "../manager/index.ts";
import type { WireProfile } from "../profiles/index.ts";
import type { Dialect } from "./dialects/index.ts";

/** What a method has to work with. */
export interface Context {
  readonly manager: Manager;
  /** The profile whose names documents of PLC use. */
  readonly profile: WireProfile;
  readonly dialect: Dialect;
  readonly caller: Caller;
  /** Of every method that this dialect has. */
  readonly docs: readonly { readonly name: string; readonly doc: string }[];
}

/** One method of the vocabulary. `run` gets the arguments after the target; what it throws becomes a fault. */
export interface Method {
  readonly name: string;
  readonly doc: string;
  /** Arguments, the target included. */
  readonly arity: number;
  readonly run: (context: Context, params: readonly unknown[]) => unknown;
}

/** A method whose first argument is the sliver that it is about. */
export interface TargetMethod extends Omit<Method, "run"> {
  readonly target: true;
  readonly run: (context: Context, record: SliverRecord, params: readonly unknown[]) => unknown;
}

export function isTargetMethod(method: Method | TargetMethod): method is TargetMethod {
  return "target" in method;
}

/** The keys that this node believes, or an empty set that believes nobody. */
export function keysOf({ manager }: Pick<Context, "manager">): KeySet {
  return manager.state.keySet ?? { v: 1, version: 0, keys: [] };
}
