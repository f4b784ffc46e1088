import type { AppliedWrite, Op, OpResult } from "@nodeyard/tree";
import type { Effect } from "./effect.ts";
import { LogCheck, type Setting } from "./log-check.ts";

/** A check with hand-made writes and effects, for tests of the rules. */
export function handMade(setting: Setting = {}) {
  const check = new LogCheck(setting);
  let zxid = 0n;
  return {
    check,
    /** One write `at` virtual milliseconds. */
    does(at: number, client: string, ...ops: Op[]): void {
      // Sequential creates are recognised by the name that they were given.
      const results = ops.map(({ op, path }) => ({ op, path }) as OpResult);
      const write: AppliedWrite = { zxid: ++zxid, at, client, session: 1n, ops, results };
      check.take(write, at);
    },
    /** What is deleted with a session of the client. */
    ends(at: number, client: string, ...ops: Op[]): void {
      const results = ops.map(({ op }) => ({ op }) as OpResult);
      check.take({ zxid: ++zxid, at, client, session: 1n, ops, results, sessionEnd: true }, at);
    },
    acts(effect: Partial<Effect> & Pick<Effect, "kind" | "moment">): void {
      const usual = { provider: "cloud", node: ID, machine: "m", ours: true, session: 1n, trusted: true };
      check.takeEffect({ ...usual, client: "launcher-0", ...effect });
    },
  };
}

/** The node of hand-made writes. */
export const ID = "0000000002";
export const NODE = `/nodepool/nodes/${ID}`;

export function makes(path: string, data: object): Op {
  return { op: "create", path, data: json(data), sequential: true };
}

export function sets(path: string, data: object): Op {
  return { op: "set", path, data: json(data) };
}

export function locks(name: string, path = NODE): Op {
  return { op: "create", path: `${path}/lock/${name}__lock__0000000000` };
}

export function unlocks(name: string, path = NODE): Op {
  return { op: "delete", path: `${path}/lock/${name}__lock__0000000000` };
}

export function json(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
