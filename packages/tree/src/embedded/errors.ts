import { TreeError } from "../errors.ts";

/** The state folder was not opened, for a reason that an operator can fix; the message says how. */
export class StoreRefused extends TreeError {
  constructor(code: `tree.store_${"foreign" | "newer" | "damaged" | "in_use"}`, message: string) {
    super(code, message);
  }
}

export function refused(
  kind: "foreign" | "newer" | "damaged" | "in-use",
  message: string,
  folder: string,
  pid: string | undefined,
): StoreRefused {
  if (kind !== "in-use") return new StoreRefused(`tree.store_${kind}`, message);
  const who = pid === undefined ? "another process" : `process ${pid}`;
  return new StoreRefused(
    "tree.store_in_use",
    `${folder} is in use by ${who}; stop it, or use its socket in that folder`,
  );
}
