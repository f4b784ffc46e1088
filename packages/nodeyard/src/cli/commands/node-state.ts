import type { Command } from "commander";
import { nodeColumns, nodeRow } from "../../listing/index.ts";
import {
  deleteNode,
  holdNode,
  listedNode,
  type OperationHandles,
  retryDeletion,
  treeNow,
} from "../../operations/index.ts";
import { parseDuration, parseNodeId } from "../arguments.ts";
import { printRows } from "../listing.ts";
import { type Session, withTree } from "../session.ts";

interface JsonOption {
  readonly json?: boolean;
}

interface DeleteOptions extends JsonOption {
  readonly now?: boolean;
}

interface HoldOptions extends JsonOption {
  readonly comment?: string;
  readonly for?: number;
}

export function defineDelete(command: Command, session: Session): void {
  command
    .argument("<node>", 'id of a node, as "nodeyard list" shows it', parseNodeId)
    .option("--now", "retry at once a node that could not be deleted in many tries")
    .option("--json", "an array on stdout with the node, empty when it is gone already")
    .action((id: string, options: DeleteOptions) =>
      withTree(session, async (handles) => {
        // Who takes the mark away of one that is on its way out has said all there is to say.
        const again = options.now === true && (await retryDeletion(handles, id));
        if (!again) await deleteNode(handles, id);
        await printNode(session, handles, id, options);
      }),
    );
}

export function defineHold(command: Command, session: Session): void {
  command
    .argument("<node>", 'id of a node, as "nodeyard list" shows it', parseNodeId)
    .option("--comment <text>", "why, for the next person")
    .option(
      "--for <duration>",
      "for at most this long; default: max-hold-age of the configuration",
      parseDuration,
    )
    .option("--json", "an array on stdout with the node")
    .action((id: string, options: HoldOptions) =>
      withTree(session, async (handles) => {
        const comment = options.comment ?? `held by ${session.machine.user}@${session.machine.hostname}`;
        await holdNode(handles, id, { comment, forSeconds: Math.ceil((options.for ?? 0) / 1000) });
        await printNode(session, handles, id, options);
      }),
    );
}

/** The node's row of `list`; an empty table when it is gone already. */
async function printNode(
  { io }: Session,
  handles: OperationHandles,
  id: string,
  { json }: JsonOption,
): Promise<void> {
  const node = await listedNode(handles, id);
  const rows = node === undefined ? [] : [nodeRow(node, treeNow(handles))];
  printRows(io, rows, nodeColumns, { json: json === true });
}
