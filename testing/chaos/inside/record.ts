import { openSync, writeSync } from "node:fs";
import type { EmbeddedTree, Op } from "@nodeyard/tree";
import { encodeWrite } from "../raw-log/lines.ts";

/**
 * Writes every change of an embedded tree to a file as it is applied, one line each, without buffering, so that the lines survive a killed
 * process. A line may be about a change that never became durable; the reader drops such lines by comparing them with the disk.
 */
export function recordCore(core: EmbeddedTree["core"]): void {
  const path = process.env.NODEYARD_CHAOS_LOG;
  if (path === undefined) return;
  const file = openSync(path, "a", 0o600);
  const append = (line: string) => writeSync(file, `${line}\n`);

  const { commit, closeSession } = core;
  core.commit = (session, ops, caller) => {
    const before = core.zxid;
    const outcome = commit.call(core, session, ops, caller);
    if (outcome.error === undefined && core.zxid !== before)
      append(
        encodeWrite({
          zxid: core.zxid,
          at: Date.now(),
          client: String(session),
          session,
          ops: ops.flatMap(contractOp),
          results: outcome.results,
        }),
      );
    return outcome;
  };
  core.closeSession = (session) => {
    const ops = core.ephemerals(session).map((path) => ({ op: "delete", path }) as const);
    closeSession.call(core, session);
    append(
      encodeWrite({
        zxid: core.zxid,
        at: Date.now(),
        client: String(session),
        session,
        ops,
        results: ops.map(() => ({ op: "delete" })),
        sessionEnd: true,
      }),
    );
  };
}

type CommittedOp = Parameters<EmbeddedTree["core"]["commit"]>[1][number];

/** Access lists are not logged, and null data is logged as empty. A setAcl is never part of a multi. */
function contractOp(op: CommittedOp): Op[] {
  if (op.op === "setAcl") return [];
  if (op.op !== "create" && op.op !== "set") return [op];
  return [{ ...op, data: op.data ?? new Uint8Array(0) }];
}
