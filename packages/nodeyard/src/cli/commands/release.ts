import type { Command } from "commander";
import { releaseLease } from "../../operations/index.ts";
import { parseLeaseId } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { type Session, withTree } from "../session.ts";

export function addRelease(program: Command, session: Session): void {
  program
    .command("release")
    .description("give leases back; their nodes are returned at once")
    .argument("<lease...>", 'ids of leases, as "nodeyard list --leases" shows them')
    .action((words: readonly string[]) => {
      const ids = words.map(parseLeaseId);
      return withTree(session, async (handles) => {
        const unknown: string[] = [];
        for (const id of ids) {
          if ((await releaseLease(handles, id)) === "released") session.io.out(`released ${id}\n`);
          else unknown.push(id);
        }
        if (unknown.length > 0)
          throw new CommandError(
            "cli.no_lease",
            `there is no lease ${unknown.join(", ")}: released before, expired, or never made; see "nodeyard list --leases"`,
          );
      });
    });
}
