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
  readonly #calls = new Set<CallUnderWay>();
  readonly #writes = new WeakSet<CallUnderWay>();

  /** `onWrite` is called at the end of each write. */
  constructor(clock: Clock, onWrite?: (write: WriteEnded) => void) {
    this.#clock = clock;
    this.#onWrite = onWrite;
  }

  begin(what: string, path: string, operations = 1): CallUnderWay {
    const call = { what, path, operations, since: this.#clock.monotonic() };
    this.#calls.add(call);
    return call;
  }

  beginWrite(ops: readonly Op[]): CallUnderWay {
    const [first] = ops;
    const call = this.begin(ops.length === 1 && first ? first.op : "commit", first?.path ?? "", ops.length);
    if (this.#onWrite !== undefined) this.#writes.add(call);
    return call;
  }

  end(call: CallUnderWay, error?: TreeError): void {
    this.#calls.delete(call);
    if (this.#writes.has(call)) this.#onWrite?.({ ...call, ms: this.#clock.monotonic() - call.since, error });
  }

  list(): readonly CallUnderWay[] {
    return [...this.#calls];
  }
}
