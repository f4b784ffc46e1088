/** Why a file was not opened. It crosses from the worker as plain fields, so it is no `TreeError` yet. */
export type RefusalKind = "foreign" | "newer" | "damaged" | "in-use";

export class Refusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}
