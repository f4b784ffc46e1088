import { JOURNAL } from "../../telemetry/index.ts";
import { addressOf, type Session, stateOf, withTree } from "../session.ts";
import type { Backend } from "./backend.ts";
import { treeBackend } from "./tree.ts";

/** Runs `command` on the API that NODEYARD_URL names, else on the tree, and ends the connection whatever happens. */
export async function withBackend<T>(
  session: Session,
  command: (backend: Backend) => Promise<T>,
): Promise<T> {
  const address = addressOf(session);
  if (address === undefined)
    return withTree(session, (handles) => command(treeBackend(handles, `${stateOf(session)}/${JOURNAL}`)));
  const [{ connect }, { restBackend }] = await Promise.all([import("@nodeyard/client"), import("./rest.ts")]);
  const { clock, random } = session.machine;
  const { url, token } = address;
  const client = connect(url, { clock, random, ...(token === undefined ? {} : { token }) });
  return command(restBackend(client, clock));
}
