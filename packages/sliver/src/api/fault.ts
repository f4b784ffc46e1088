/** What a caller gets instead of a result. Codes are those of the old manager (docs/contract/slivers.md, "Calls and faults"). */
export class Fault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "Fault";
    this.code = code;
  }
}

export const UNEXPECTED = 1;
export const UNKNOWN_METHOD = 100;
export const WRONG_COUNT = 101;
export const WRONG_ARGUMENT = 102;
export const FAILED_CALL = 104;
export const DENIED = 108;

export function wrongArgument(what: string): Fault {
  return new Fault(WRONG_ARGUMENT, `Invalid argument: ${what}`);
}
