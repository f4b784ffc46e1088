import type { MultiOpResult } from "@nodeyard/zookeeper";
import type { Op, OpResult, Stat } from "../contract.ts";

/**
 * The results of a multi that was applied. ZooKeeper answers a create within a multi with its path only, and reading the Stat would cost
 * a request per create. The whole Stat follows from the request and the transaction, except for the times. They come from a set of the
 * same commit if there is one (same transaction, so exact), otherwise from `now`, the estimated tree time in milliseconds.
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

/** The Stat right after the create. Children that later operations of the same commit create are not counted in it. */
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
