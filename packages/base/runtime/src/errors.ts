import { withoutSecrets } from "./secrets.ts";

/**
 * Base class of Nodeyard's errors. `code` is stable and meant for programs. The message is one line for people, with the
 * value, the place and, if there is one, the remedy. Secrets of this process are taken out of it (`keepSecret`).
 */
export class NodeyardError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(withoutSecrets(message), options);
    this.name = new.target.name;
    this.code = code;
  }
}

/**
 * Base class of errors with one code whose message is written where they are thrown: `extends errorClass("tree.closed")`.
 * `base`: the class to extend.
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

/** The message of any thrown value, without the secrets of this process. */
export function messageOf(error: unknown): string {
  return withoutSecrets(error instanceof Error ? error.message : String(error));
}
