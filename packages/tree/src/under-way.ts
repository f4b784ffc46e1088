import type { Clock } from "@nodeyard/runtime";
import type { CallUnderWay, Op } from "./contract.ts";

/** The calls of one tree that wait for their answers. */
export class CallsUnderWay {
  readonly #clock: Clock;
  readonly #calls = new Set<CallUnderWay>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(what: string, path: string, operations = 1): CallUnderWay {
    const call = { what, path, operations, since: this.#clock.monotonic() };
    this.#calls.add(call);
    return call;
  }

  beginWrite(ops: readonly Op[]): CallUnderWay {
    const [first] = ops;
    return this.begin(ops.length === 1 && first ? first.op : "commit", first?.path ?? "", ops.length);
  }

  end(call: CallUnderWay): void {
    this.#calls.delete(call);
  }

  list(): readonly CallUnderWay[] {
    return [...this.#calls];
  }
}
