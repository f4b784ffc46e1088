import { defined } from "@nodeyard/runtime";
import type { Command } from "commander";
import { parseLeaseId, parseNodeId } from "../arguments.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import type { Session } from "../session.ts";

interface ReleaseOptions {
  readonly commit?: boolean;
  readonly json?: boolean;
}

/** `nodeyard release`: all that exist are released, then the unknown ones are an error. Idempotent: released twice is released. */
export function defineRelease(command: Command, session: Session): void {
  command
    .argument("<lease...>", 'ids of leases, as "nodeyard list --leases" shows them')
    .option("--commit", "the job ended well: what it leaves in caches of its nodes serves later jobs")
    .option("--json", "an array of objects on stdout: lease, outcome (released or unknown)")
    .action((words: readonly string[], { commit, json }: ReleaseOptions) => {
      // All are checked before one is released: a misspelt id must not leave the command half done.
      const ids = [...new Set(words.map(parseLeaseId))];
      return withBackend(session, async (backend) => {
        const released: { readonly lease: string; readonly outcome: "released" | "unknown" }[] = [];
        for (const lease of ids) {
          const found = await backend.find("release_lease", {
            path: { id: lease },
            body: defined({ commit }),
          });
          const outcome = found.length > 0 ? "released" : "unknown";
          released.push({ lease, outcome });
          if (outcome === "released" && json !== true) session.io.out(`released ${lease}\n`);
        }
        if (json === true) printJson(session.io, released);
        const unknown = released.filter(({ outcome }) => outcome === "unknown").map(({ lease }) => lease);
        if (unknown.length > 0)
          throw new CommandError(
            "cli.no_lease",
            `there is no lease ${unknown.join(", ")}: it was released, has expired, or never existed; see "nodeyard list --leases"`,
          );
      });
    });
}

/** `comment`: noted in the record of the backing node's retirement. */
interface RetireOptions {
  readonly comment?: string;
  readonly json?: boolean;
}

/** `nodeyard retire`: for a backing node that behaves badly. Its slots in use are used to their end. */
export function defineRetire(command: Command, session: Session): void {
  command
    .argument("<node>", "id of a node with a slot, or of the backing node itself", parseNodeId)
    .option("--comment <text>", "why, for the log")
    .option("--json", "an object on stdout with the id of the backing node")
    .action((id: string, { comment, json }: RetireOptions) =>
      withBackend(session, async (backend) => {
        const { io } = session;
        const retired = await backend.call("retire_node", { path: { id }, body: defined({ why: comment }) });
        if (json === true) printJson(io, retired);
        else io.out(`node ${retired.backing_node} gets no new slots\n`);
      }),
    );
}
