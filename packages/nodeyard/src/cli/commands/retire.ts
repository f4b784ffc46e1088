import type { Command } from "commander";
import { retireNode } from "../../operations/index.ts";
import { parseNodeId } from "../arguments.ts";
import { type Session, withTree } from "../session.ts";

interface RetireOptions {
  readonly comment?: string;
  readonly json?: boolean;
}

export function defineRetire(command: Command, session: Session): void {
  command
    .argument("<node>", "id of a node with a slot, or of the backing node itself", parseNodeId)
    .option("--comment <text>", "why, for the log")
    .option("--json", "an object on stdout with the id of the backing node")
    .action((id: string, { comment = "retired by hand", json }: RetireOptions) =>
      withTree(session, async (handles) => {
        const { io } = session;
        const backing = await retireNode(handles, id, comment);
        if (json === true) io.out(`${JSON.stringify({ backing_node: backing })}\n`);
        else io.out(`node ${backing} gets no new slots\n`);
      }),
    );
}
