/**
 * Base of every error of ours. `code` is stable and meant for programs; the message is one line for people that
 * names the value, the place and, where there is one, the remedy.
 */
export class NodeyardError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/**
 * Base class of errors that have one code, and a message that is written where they are thrown: `extends errorClass("tree.closed")`.
 * `base`: what they are besides.
 */
export function errorClass(
  code: string,
  base: typeof NodeyardError = NodeyardError,
): new (
  message: string,
  options?: { readonly cause?: unknown },
) => NodeyardError {
  return class extends base {
    constructor(message: string, options?: { readonly cause?: unknown }) {
      super(code, message, options);
    }
  };
}

/** The text of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
