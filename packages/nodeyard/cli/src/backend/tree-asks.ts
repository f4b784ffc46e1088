import {
  askConsole,
  explain,
  imageWork,
  type OperationHandles,
  queryMembers,
  toExplanation,
} from "@nodeyard/operations";
import { readJournal } from "@nodeyard/telemetry";
import type { Backend } from "./backend.ts";

// What commands ask of launchers and builders. A file of its own, loaded by these commands alone: it brings the schemas of the answers.
export { askConsole, imageWork };

/**
 * `explain` on the tree: what the members answer, and what the journal of this machine has. The members that are silent are noted
 * here, because a subject that nobody knows has no story to name them in.
 */
export async function explainByTree(
  handles: OperationHandles,
  journal: string,
  subject: Parameters<Backend["explain"]>[0],
): ReturnType<Backend["explain"]> {
  const query = queryMembers(handles, (wanted) => readJournal(journal, wanted));
  let silent: readonly string[] = [];
  const story = await explain(handles, subject, async (about) => {
    const replies = await query(about);
    silent = replies.asked.silent.map(({ member }) => member);
    return replies;
  });
  return { explanation: story && toExplanation(story, journal), silent, journal };
}
