import type { MultiOpResult } from "@nodeyard/zookeeper";
import type { Op, OpResult, Stat } from "../contract.ts";

/**
 * Results of a multi that went through. A create inside a multi is answered with its path alone, and asking for the rest
 * would cost a read per create; all of the Stat follows from the request and the transaction except the times. They are
 * taken from a set of the same commit where there is one (the same transaction, so exact), else from `now`, the tree's time as well as
 * we know it, in milliseconds.
 */
export function commitResults(
  ops: readonly Op[],
  results: readonly MultiOpResult[],
  session: bigint,
  now: number,
): OpResult[] {
  const time = results.find((result) => result.op === "set")?.stat.mtime ?? now;
  return results.map((result, index): OpResult => {
    const op = ops[index];
    if (result.op !== "create" || op?.op !== "create") return result as OpResult;
    const owner = op.ephemeral ? session : 0n;
    return {
      op: "create",
      path: result.path,
      stat: createdStat(op.data?.length ?? 0, owner, result.czxid, time),
    };
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
