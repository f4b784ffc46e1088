import { number, optional, text, type ValuesOf } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of what drivers remarked on machines that are in use: the user of the node has to learn it while it still can act. */
export const REMARKS = "/nodeyard/remarks";

const fields = {
  /** Tree time, in milliseconds. */
  at: optional("at", 0, number),
  text: optional("text", null, text),
};
const kind = ownRecord("remark", fields);

/** The last remark on a node's machine, such as that the cloud takes it back. */
export type Remark = ValuesOf<typeof fields>;

/** Path of the remark on a node. */
export function remarkPath(node: string): string {
  return `${REMARKS}/${node}`;
}

/** The bytes of a remark. */
export function encodeRemark(remark: Remark): Uint8Array {
  return kind.encode(remark);
}

/** Reads a remark; missing or invalid fields get defaults. Never throws. */
export function decodeRemark(data: Uint8Array): Remark {
  return kind.readable(data);
}
