import type { Clock } from "@nodeyard/runtime";

/** A request as it came over the wire. */
export interface Asked {
  readonly method: string;
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** An error in the form of the resource manager. */
export class Refusal extends Error {
  readonly answer: Answer;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.answer = { status, headers, body: { error: { code, message } } };
  }
}

/** An operation of Azure, which a client follows by `Azure-AsyncOperation` or `Location`. */
export interface Operation {
  readonly id: string;
  readonly endsAt: number;
  /** What happens at its end, whose monotonic time it gets; returns what the operation yields. Throws Refusal when it fails. */
  readonly end: (at: number) => unknown;
  result?: { readonly output: unknown } | { readonly failed: Refusal };
}

/** Operations end by themselves when their time has come, and are remembered. */
export class Operations {
  readonly #clock: Clock;
  readonly #all = new Map<string, Operation>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(ms: number, end: Operation["end"]): Operation {
    const id = `00000000-0000-4000-8000-${String(++this.#count).padStart(12, "0")}`;
    const operation = { id, endsAt: this.#clock.monotonic() + ms, end };
    this.#all.set(id, operation);
    return operation;
  }

  /** Ends what has come to its end; called before each request is looked at. */
  advance(): void {
    for (const operation of this.#all.values()) {
      if (operation.result !== undefined || operation.endsAt > this.#clock.monotonic()) continue;
      try {
        operation.result = { output: operation.end(operation.endsAt) };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        operation.result = { failed: error };
      }
    }
  }

  get(id: string): Operation | undefined {
    return this.#all.get(id);
  }
}
