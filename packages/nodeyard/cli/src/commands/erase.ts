import { plain } from "@nodeyard/operations/listing";
import { counted } from "@nodeyard/runtime";
import type { Command } from "commander";
import { parseImage } from "../arguments.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError, CommandFailed } from "../errors.ts";
import { printJson } from "../listing.ts";
import type { Session } from "../session.ts";

interface EraseOptions {
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `nodeyard erase`: of the tree only. The question is worded as Nodepool's, and scripts answer it. */
export function defineErase(command: Command, session: Session): void {
  command
    .argument("<provider>", "name of a provider, configured or not", parseImage)
    .option("--force", "do not ask; also erase locked nodes, and a provider that is still served")
    .option("--json", "an object on stdout: provider, uploads, nodes and kept")
    .action((provider: string, options: EraseOptions) =>
      withBackend(session, (backend) => erase(session, backend, provider, options)),
    );
}

/** Asks first unless forced. Rejects with CommandFailed when nodes were kept, so that a script notices. */
async function erase(
  { io }: Session,
  backend: Backend,
  provider: string,
  { force, json }: EraseOptions,
): Promise<void> {
  if (force !== true) {
    const { served_by: serving } = await backend.call("get_provider_records", {
      path: { id: provider },
    });
    // Its launchers would write new records while the old ones go, or never delete the machines of these (docs/contract/operations.md, "Erase").
    if (serving.length > 0)
      throw new CommandError(
        "cli.provider_served",
        `${serving.join(", ")} serves provider ${provider}, or still deletes its nodes; remove it from that configuration and wait until they are gone, or use --force`,
      );
    io.err("\nWARNING! This action is not reversible!\n");
    const answer = await io.ask(`Erase ZooKeeper data for provider ${plain(provider)}? [N/y] `);
    // Without a terminal there is no answer, and nothing is erased.
    if (answer?.toLowerCase() !== "y") {
      io.err("Aborting. No data erased.\n");
      throw new CommandFailed(1);
    }
  }
  const { uploads, nodes, kept } = await backend.call("erase_provider", {
    path: { id: provider },
    body: { force: force === true },
  });
  if (json === true) printJson(io, { provider, uploads, nodes, kept });
  else
    io.out(
      `erased ${counted(uploads, "upload")} and ${counted(nodes.length, "node")} of ${plain(provider)}; its cloud still has them\n`,
    );
  if (kept.length === 0) return;
  io.err(`nodeyard: kept nodes that are locked: ${kept.join(", ")}; --force erases them, too\n`);
  throw new CommandFailed(1);
}
