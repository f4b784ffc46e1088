import type { ChosenSlot } from "./choose.ts";
import type { MetastaticLabel } from "./config.ts";

interface Waiter {
  readonly settle: PromiseWithResolvers<ChosenSlot>;
  readonly label: MetastaticLabel;
  readonly request: string;
}

/** Launches that wait for a slot, by label in the order in which they came. */
export class WaitingLine {
  readonly #byLabel = new Map<string, Set<Waiter>>();
  readonly #byRequest = new Map<string, Set<Waiter>>();

  /** Resolves with a slot that `serve` chose; rejects with what `fail` or `forget` says, or with the signal's reason. */
  wait(label: MetastaticLabel, request: string, signal: AbortSignal): Promise<ChosenSlot> {
    const waiter: Waiter = { settle: Promise.withResolvers<ChosenSlot>(), label, request };
    put(this.#byLabel, label.name, waiter);
    put(this.#byRequest, request, waiter);
    const end = () => this.#end(waiter, () => waiter.settle.reject(signal.reason));
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    return waiter.settle.promise.finally(() => signal.removeEventListener("abort", end));
  }

  /** Gives slots to the first in each line, for as long as `choose` finds any. */
  serve(choose: (label: MetastaticLabel) => ChosenSlot | undefined): void {
    for (const waiters of [...this.#byLabel.values()]) {
      for (const waiter of waiters) {
        const place = choose(waiter.label);
        if (place === undefined) break;
        this.#end(waiter, () => waiter.settle.resolve(place));
      }
    }
  }

  /** Ends the wait of the first `count` of a label. */
  fail(label: string, count: number, why: () => Error): void {
    for (const waiter of [...(this.#byLabel.get(label) ?? [])].slice(0, count))
      this.#end(waiter, () => waiter.settle.reject(why()));
  }

  failAll(why: () => Error): void {
    for (const label of [...this.#byLabel.keys()]) this.fail(label, Number.POSITIVE_INFINITY, why);
  }

  /** Ends the waits for a request that is gone. */
  forget(request: string, why: () => Error): void {
    for (const waiter of [...(this.#byRequest.get(request) ?? [])])
      this.#end(waiter, () => waiter.settle.reject(why()));
  }

  #end(waiter: Waiter, settle: () => void): void {
    drop(this.#byLabel, waiter.label.name, waiter);
    drop(this.#byRequest, waiter.request, waiter);
    settle();
  }
}

function put(lines: Map<string, Set<Waiter>>, key: string, waiter: Waiter): void {
  lines.set(key, (lines.get(key) ?? new Set()).add(waiter));
}

function drop(lines: Map<string, Set<Waiter>>, key: string, waiter: Waiter): void {
  const line = lines.get(key);
  if (line?.delete(waiter) && line.size === 0) lines.delete(key);
}
