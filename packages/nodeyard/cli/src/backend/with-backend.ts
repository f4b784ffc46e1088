import type { Client } from "@nodeyard/client";
import type { CommandChange } from "@nodeyard/model";
import { noteChange } from "@nodeyard/operations";
import { defined, messageOf } from "@nodeyard/runtime";
import { JOURNAL } from "@nodeyard/telemetry";
import { addressOf, personOf, type Session, stateOf, withTree } from "../session.ts";
import type { Backend } from "./backend.ts";
import { treeBackend } from "./tree.ts";

/**
 * Runs `command` on the API that NODEYARD_URL names, else on the tree, and ends the connection whatever happens. Rejects as
 * `command` does, and with the error of the connection. Each way is loaded only when it is taken, which keeps the start of a
 * command short.
 */
export async function withBackend<T>(
  session: Session,
  command: (backend: Backend) => Promise<T>,
): Promise<T> {
  const client = await clientOf(session);
  if (client === undefined)
    return withTree(session, (handles) => {
      const note = (change: CommandChange) =>
        noteChange(handles, change).catch((error: unknown) => {
          const { action, subject, status } = change;
          // A command that failed has said so, and has changed nothing that the audit could lack.
          if (status !== 200) return;
          const what = `${action}${subject === "" ? "" : ` of ${subject}`}`;
          session.io.err(
            `nodeyard: the audit lacks ${what}, since the tree did not take its note: ${messageOf(error)}\n`,
          );
        });
      return command(treeBackend(handles, `${stateOf(session)}/${JOURNAL}`, personOf(session), note));
    });
  const { restBackend } = await import("./rest.ts");
  return command(restBackend(client, session.machine.clock));
}

/** The API that NODEYARD_URL names; undefined: commands work on the tree. */
export async function clientOf(session: Session): Promise<Client | undefined> {
  const address = addressOf(session);
  if (address === undefined) return undefined;
  const { connect } = await import("@nodeyard/client");
  const { clock, random } = session.machine;
  const { url, token } = address;
  return connect(url, { clock, random, ...defined({ token }) });
}
