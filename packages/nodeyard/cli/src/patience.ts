import { type Clock, inTime } from "@nodeyard/runtime";
import { CommandError } from "./errors.ts";

/** How long a person waits for a server that may be gone, once there is nothing more to gain; milliseconds. */
const PATIENCE_MS = 3_000;

/**
 * What `work` gives, or a CommandError when it takes longer than PATIENCE_MS. The work is not aborted: its result is ignored
 * then.
 */
export function patiently<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const late = () => new CommandError("cli.no_answer", `no answer within ${PATIENCE_MS / 1000} s`);
  return inTime(clock, PATIENCE_MS, work, late);
}
