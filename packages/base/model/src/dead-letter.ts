import { number, optional, text, type ValuesOf, word } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of marks for nodes whose machines could not be deleted in many attempts. Further attempts are made, but rarely. */
export const DEAD_LETTERS = "/nodeyard/dead-letters";

const fields = {
  /** Id of the node. */
  node: optional("node", "", word),
  provider: optional("provider", null, text),
  /** Failed attempts before the mark was written. */
  attempts: optional("attempts", 0, number),
  /** Tree time of the first known failed attempt, in milliseconds. */
  since: optional("since", 0, number),
  /** The last error. */
  error: optional("error", "", word),
};
const kind = ownRecord("dead letter", fields);

/** A dead letter: why the machine of a node cannot be deleted. */
export type DeadLetter = ValuesOf<typeof fields>;

/** Path of the dead letter of a node. */
export function deadLetterPath(node: string): string {
  return `${DEAD_LETTERS}/${node}`;
}

/** The bytes of a dead letter. */
export function encodeDeadLetter(letter: DeadLetter): Uint8Array {
  return kind.encode(letter);
}

/** Reads a dead letter. Missing or invalid fields get defaults, because the existence of the mark matters most. Never throws. */
export function decodeDeadLetter(node: string, data: Uint8Array): DeadLetter {
  return { ...kind.readable(data), node };
}
