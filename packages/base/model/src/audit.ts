import { number, optional, strict, text, type ValuesOf, word } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of the latest changes that command lines made, by their numbers. */
export const AUDIT = "/nodeyard/audit";

const fields = {
  /** The person at the command line, as that machine names it: who reaches the tree may write anything. */
  who: strict("who", word),
  /** The operation of REST v1 that does the same, and its object. */
  action: strict("action", word),
  subject: optional("subject", "", word),
  why: optional("why", null, text),
  /** As of REST v1: 200, or 409 where the change was refused. */
  status: strict("status", number),
};
const kind = ownRecord("change", fields);

/** A change by a command line, for the audit of launchers. */
export type CommandChange = ValuesOf<typeof fields>;

/** The record of a change, as it is written once. */
export function encodeChange(change: CommandChange): Uint8Array {
  return kind.encode(change);
}

/** @throws RecordError for a record that this release cannot read */
export function decodeChange(name: string, data: Uint8Array): CommandChange {
  return kind.decode(name, data);
}
