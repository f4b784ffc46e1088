import { TreeError } from "../errors.ts";

/** Why a file could not be opened. */
export type RefusalKind = "foreign" | "newer" | "damaged" | "in-use" | "moved";

/** Thrown in the worker thread, which sends it to the main thread as plain fields; `refused` makes a `TreeError` of them there. */
export class Refusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

/** The state folder could not be opened, for a reason that an operator can fix. The message says how. */
export class StoreRefused extends TreeError {
  constructor(code: `tree.store_${"foreign" | "newer" | "damaged" | "in_use" | "moved"}`, message: string) {
    super(code, message);
  }
}

/** The error of a refusal in the main thread. `pid` is that of the process which has the folder, if it is known. */
export function refused(
  kind: RefusalKind,
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
