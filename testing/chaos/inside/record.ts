import { openSync, writeSync } from "node:fs";
import type { EmbeddedTree, Op } from "@nodeyard/tree";
import { encodeWrite } from "../raw-log/lines.ts";

/**
 * Writes down every change of an embedded tree as it is applied, one line each, at once: it outlives a killed process. A
 * line may tell of what never became durable; the reader drops it by what the disk holds.
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

/** Access lists are no matter of the log, and to its reader null data is empty. A setAcl comes alone, never in a multi. */
function contractOp(op: CommittedOp): Op[] {
  if (op.op === "setAcl") return [];
  if (op.op !== "create" && op.op !== "set") return [op];
  return [{ ...op, data: op.data ?? new Uint8Array(0) }];
}
