import { errorFromCode, wire } from "@nodeyard/zookeeper";
import type { Op, OpResult, Stat } from "../contract.ts";
import { parentOf } from "../engine/index.ts";
import { CommitFailed, StoreFailed, type TreeError } from "../errors.ts";
import { describe } from "../request-size.ts";
import { treeError } from "./errors.ts";

const { ErrorCode } = wire;

/** What a server leaves out of the answer to a multi, and the caller knows. */
export interface MultiFacts {
  /** The transaction. */
  readonly zxid: bigint;
  readonly session: bigint;
  /** Tree time now, as well as we know it, in milliseconds. */
  readonly now: number;
}

/**
 * Results of a multi that went through. A create inside a multi is answered with its path alone, and asking for the rest
 * would cost a read per create; all of the Stat follows from the request and the transaction except the times. They are
 * taken from a set of the same commit where there is one (the same transaction, so exact), else from the tree's clock as
 * we know it.
 */
export function multiResults(
  ops: readonly Op[],
  results: readonly wire.MultiResult[],
  facts: MultiFacts,
): OpResult[] {
  const time = timeOf(results) ?? facts.now;
  return ops.map((op, index): OpResult => {
    const result = results[index] as { readonly path: string; readonly stat: Stat };
    switch (op.op) {
      case "create":
        return {
          op: "create",
          path: result.path,
          stat: createdStat(op.data?.length ?? 0, op.ephemeral ? facts.session : 0n, facts.zxid, time),
        };
      case "set":
        return { op: "set", stat: result.stat };
      default:
        return { op: op.op };
    }
  });
}

/** A create's own place in time is before the ops behind it, so later children in the same commit do not show. */
function createdStat(dataLength: number, ephemeralOwner: bigint, zxid: bigint, time: number): Stat {
  return {
    czxid: zxid,
    mzxid: zxid,
    pzxid: zxid,
    ctime: time,
    mtime: time,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeralOwner,
    dataLength,
    numChildren: 0,
  };
}

function timeOf(results: readonly wire.MultiResult[]): number | undefined {
  for (const result of results) if ("stat" in result) return result.stat.mtime;
  return undefined;
}

/**
 * The refusal in the answer to a multi, if it is one. Ops before the culprit are answered with 0, those behind it with
 * "runtime inconsistency"; the culprit alone has a code that says something.
 */
export function multiError(
  ops: readonly Op[],
  results: readonly wire.MultiResult[],
  limit: number,
): TreeError | undefined {
  if (results.length !== ops.length) {
    return new StoreFailed(
      describe(ops),
      "unknown",
      new Error(`${results.length} results for ${ops.length} operations`),
    );
  }
  let culprit = -1;
  let code = 0;
  for (let index = 0; index < results.length; index++) {
    const result = results[index] as wire.MultiResult;
    if (result.type !== "error" || result.err === ErrorCode.ok) continue;
    if (culprit >= 0 && result.err === ErrorCode.runtimeInconsistency) continue;
    if (culprit >= 0 && code !== ErrorCode.runtimeInconsistency) continue;
    culprit = index;
    code = result.err;
  }
  if (culprit < 0) return undefined;
  const op = ops[culprit] as Op;
  const path = code === ErrorCode.noNode && op.op === "create" ? parentOf(op.path) : op.path;
  const reason = treeError(errorFromCode(code, { op: op.op, path: op.path }), describe([op]), path, 0, limit);
  return ops.length === 1 ? reason : new CommitFailed(culprit, reason);
}
