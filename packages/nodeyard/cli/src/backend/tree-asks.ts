import {
  askConsole,
  askTenants,
  type Explained,
  type Explanation,
  explain,
  imageWork,
  type OperationHandles,
  queryMembers,
  toExplanation,
} from "@nodeyard/operations";
import { readJournal } from "@nodeyard/telemetry";

// What commands ask of launchers and builders. A file of its own, loaded by these commands alone: it brings the schemas of the answers.
export { askConsole, askTenants, imageWork };

/** What `explain` found, and what it could not ask. */
export interface Explanations {
  /** Undefined: no process knows the subject. */
  readonly explanation: Explanation | undefined;
  /** Members that did not answer in time; empty of a server, which says so in the explanation. */
  readonly silent: readonly string[];
  /** The journal in which events of launchers that do not answer were looked up; for messages only. */
  readonly journal: string;
}

/**
 * `explain` on the tree: what the members answer, and what the journal of this machine has. The members that are silent are noted
 * here, because a subject that nobody knows has no story to name them in.
 */
export async function explainByTree(
  handles: OperationHandles,
  journal: string,
  subject: Explained,
): Promise<Explanations> {
  const query = queryMembers(handles, (wanted) => readJournal(journal, wanted));
  let silent: readonly string[] = [];
  const story = await explain(handles, subject, async (about) => {
    const replies = await query(about);
    silent = replies.asked.silent.map(({ member }) => member);
    return replies;
  });
  return { explanation: story && toExplanation(story, journal), silent, journal };
}
