import { askMembers, type ConsoleEnd } from "@nodeyard/asking";
import type { NodeRecord } from "@nodeyard/model";

export type { ConsoleEnd };

import type { OperationHandles } from "./handles.ts";

/** Above what a launcher waits for the cloud, milliseconds, so that its answer still comes. */
const WITHIN_MS = 10_000;

/**
 * The end of the console of a node, from a launcher that serves its provider. The first console ends the wait, and so does what the
 * launcher of the node (`launcher` in its record) says. Never rejects.
 */
export async function askConsole(
  handles: OperationHandles,
  { id, launcher, provider }: Pick<NodeRecord, "id" | "launcher" | "provider">,
): Promise<ConsoleEnd> {
  const { answers } = await askMembers(
    handles,
    { console: id },
    WITHIN_MS,
    ({ hostname, testimony: { console: end } }) =>
      end?.problem === null ||
      (end !== undefined && launcher?.startsWith(`${hostname}-PoolWorker.`) === true),
  );
  const ends = answers.flatMap(({ testimony }) => testimony.console ?? []);
  const problem = `no launcher that serves ${provider ?? "its provider"} answers`;
  return ends.find((end) => end.problem === null) ?? ends[0] ?? { lines: [], cut: false, problem };
}
