import { number, optional, text, type ValuesOf, word } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Marks of nodes whose machines could not be deleted in many tries; they are still tried, rarely. */
export const DEAD_LETTERS = "/nodeyard/dead-letters";

const fields = {
  /** Id of the node. */
  node: optional("node", "", word),
  provider: optional("provider", null, text),
  /** Tries that failed before it was marked. */
  attempts: optional("attempts", 0, number),
  /** Tree time, milliseconds, of the first of them that is known. */
  since: optional("since", 0, number),
  /** The last error. */
  error: optional("error", "", word),
};
const kind = ownRecord("dead letter", fields);

/** Why a node has such a mark. */
export type DeadLetter = ValuesOf<typeof fields>;

/** Where the mark of a node is. */
export function deadLetterPath(node: string): string {
  return `${DEAD_LETTERS}/${node}`;
}

/** The bytes of a mark. */
export function encodeDeadLetter(letter: DeadLetter): Uint8Array {
  return kind.encode(letter);
}

/** What is missing or of a wrong type in it has a default: that the mark exists says the most. Throws nothing. */
export function decodeDeadLetter(node: string, data: Uint8Array): DeadLetter {
  return { ...kind.readable(data), node };
}
