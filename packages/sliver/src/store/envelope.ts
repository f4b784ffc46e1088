import { createHash } from "node:crypto";
import { ForeignStoreError, NewerStoreError } from "./errors.ts";

/** Of the content. What can read schema N reads everything up to N. */
export const SCHEMA = 1;

const FORMAT = "nodeyard-sliver-store";

export interface Generation {
  /** Grows with each write; the highest one counts. */
  readonly sequence: number;
  readonly body: string;
}

/** One line about the content, and the content: JSON both, so that a person can read it. */
export function seal(node: string, { sequence, body }: Generation, schema = SCHEMA): Uint8Array {
  const sha256 = checksum(schema, node, sequence, body);
  const head = { format: FORMAT, schema, node, sequence, bytes: Buffer.byteLength(body), sha256 };
  return Buffer.from(`${JSON.stringify(head)}\n${body}\n`);
}

/** undefined for what is damaged. Throws ForeignStoreError, NewerStoreError for what is whole and not ours to read. */
export function unseal(bytes: Uint8Array, here: string): Generation | undefined {
  const text = Buffer.from(bytes).toString("utf8");
  const end = text.indexOf("\n");
  const head = parse(text.slice(0, end));
  if (end < 0 || head?.format !== FORMAT) return undefined;
  const { node, schema, sequence, sha256 } = head;
  if (typeof node !== "string" || typeof schema !== "number" || typeof sequence !== "number")
    return undefined;
  const body = text.slice(end + 1, -1);
  if (!text.endsWith("\n") || sha256 !== checksum(schema, node, sequence, body)) return undefined;
  if (node !== here) throw new ForeignStoreError(node, here);
  if (schema > SCHEMA) throw new NewerStoreError(schema, SCHEMA);
  return { sequence, body };
}

function checksum(schema: number, node: string, sequence: number, body: string): string {
  return createHash("sha256").update(`${schema}\n${node}\n${sequence}\n${body}`).digest("hex");
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
