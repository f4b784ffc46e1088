import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change } from "./replay.ts";
import type { Rule } from "./rule.ts";

const REQUEST = /^\/nodepool\/requests\/([^/]+)$/;

/**
 * Ids come only from sequential creates (docs/contract/tree.md, "Sequence numbers"), and a commit holds one request at most
 * (docs/contract/write-order.md, "Finishing a request").
 */
export class Commits implements Rule {
  onNode(change: Change): void {
    checkId(change);
  }

  onRequest(change: Change): void {
    checkId(change);
  }

  onWrite(write: AppliedWrite): void {
    if (write.sessionEnd === true || write.ops.length === 1) return;
    const requests = new Set(
      write.ops.flatMap((op) => (op.op === "check" ? [] : (REQUEST.exec(op.path)?.[1] ?? []))),
    );
    if (requests.size > 1)
      throw new Broken("a commit holds one request at most", write, [...requests].join(", "));
  }
}

function checkId({ op, write, id }: Change): void {
  if (op.op === "create" && op.sequential !== true)
    throw new Broken("ids come only from sequential creates", write, id);
}
