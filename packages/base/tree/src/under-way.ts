import type { Clock } from "@nodeyard/runtime";
import type { CallUnderWay, Op } from "./contract.ts";
import type { TreeError } from "./errors.ts";

/** A write that has ended, by its answer or because the caller gave up: a commit or a single operation. */
export interface WriteEnded extends CallUnderWay {
  readonly ms: number;
  /** Why the write failed or has an unknown outcome. */
  readonly error: TreeError | undefined;
}

/** The calls of one tree that have no answer yet. */
export class CallsUnderWay {
  readonly #clock: Clock;
  readonly #onWrite: ((write: WriteEnded) => void) | undefined;
  /** Each with whether it is a write. */
  readonly #calls = new Map<CallUnderWay, boolean>();

  /** `onWrite` is called at the end of each write. */
  constructor(clock: Clock, onWrite?: (write: WriteEnded) => void) {
    this.#clock = clock;
    this.#onWrite = onWrite;
  }

  begin(what: string, path: string): CallUnderWay {
    return this.#begin(what, path, 1, false);
  }

  beginWrite(ops: readonly Op[]): CallUnderWay {
    const [first] = ops;
    const what = ops.length === 1 && first ? first.op : "commit";
    return this.#begin(what, first?.path ?? "", ops.length, true);
  }

  end(call: CallUnderWay, error?: TreeError): void {
    const isWrite = this.#calls.get(call) === true;
    this.#calls.delete(call);
    if (isWrite) this.#onWrite?.({ ...call, ms: this.#clock.monotonic() - call.since, error });
  }

  list(): readonly CallUnderWay[] {
    return [...this.#calls.keys()];
  }

  #begin(what: string, path: string, operations: number, isWrite: boolean): CallUnderWay {
    const call = { what, path, operations, since: this.#clock.monotonic() };
    this.#calls.set(call, isWrite);
    return call;
  }
}
