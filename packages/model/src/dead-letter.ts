import { text } from "./fields.ts";
import { number, optional, ownRecord, word } from "./own-record.ts";

/** Marks of nodes whose machines could not be deleted in many tries; they are still tried, rarely. */
export const DEAD_LETTERS = "/nodeyard/dead-letters";

/** Why a node has such a mark. */
export interface DeadLetter {
  /** Id of the node. */
  readonly node: string;
  readonly provider: string | null;
  /** Tries that failed before it was marked. */
  readonly attempts: number;
  /** Tree time, milliseconds, of the first of them that is known. */
  readonly since: number;
  /** The last error. */
  readonly error: string;
}

const kind = ownRecord<DeadLetter>("dead letter", {
  node: optional("node", "", word),
  provider: optional("provider", null, text),
  attempts: optional("attempts", 0, number),
  since: optional("since", 0, number),
  error: optional("error", "", word),
});

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
