import type { Clock, Timer } from "@nodeyard/runtime";

interface Entry {
  /** By the process's own monotonic clock. */
  readonly due: number;
  readonly fn: () => void;
  timer: Timer | undefined;
}

/**
 * The resources of a live process. When it dies, none of them ever settles, fires or answers again: its code awaits for ever. While it is
 * suspended, everything for it is delayed.
 */
export class Life {
  readonly #clock: Clock;
  readonly #timers = new Set<Entry>();
  #dead = false;
  #frozenAt: number | undefined;
  /** Calls that arrived while it was suspended. */
  #held: (() => void)[] = [];
  /** How far its monotonic clock is behind, and its wall clock ahead, milliseconds. */
  #behind = 0;
  #ahead = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get dead(): boolean {
    return this.#dead;
  }

  get frozen(): boolean {
    return this.#frozenAt !== undefined;
  }

  end(): void {
    this.#dead = true;
  }

  /** Only its wall clock jumps. */
  jump(ms: number): void {
    this.#ahead += ms;
  }

  freeze(): void {
    this.#frozenAt ??= this.#clock.monotonic();
  }

  /** Resumes. `slept`: its monotonic clock stood still as well. */
  thaw(slept: boolean): void {
    if (this.#frozenAt === undefined) return;
    if (slept) this.#behind += this.#clock.monotonic() - this.#frozenAt;
    this.#frozenAt = undefined;
    for (const settle of this.#held.splice(0)) settle();
    for (const entry of [...this.#timers].sort((a, b) => a.due - b.due)) {
      entry.timer?.cancel();
      this.#start(entry);
    }
  }

  clock(): Clock {
    return {
      now: () => this.#clock.now() + this.#ahead,
      monotonic: () => this.#monotonic(),
      setTimer: (ms, fn): Timer => {
        const entry: Entry = { due: this.#monotonic() + Math.max(0, ms), fn, timer: undefined };
        if (this.#dead) return { cancel() {} };
        this.#timers.add(entry);
        this.#start(entry);
        return {
          cancel: () => {
            this.#timers.delete(entry);
            entry.timer?.cancel();
          },
        };
      },
    };
  }

  /** The same object, whose promises stop settling when the process dies. Calls already made take effect. */
  guard<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name, object);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (this.#dead) return new Promise(() => {});
          const result: unknown = Reflect.apply(value, object, args);
          return result instanceof Promise ? this.#untilDeath(result) : result;
        };
      },
    });
  }

  #monotonic(): number {
    return (this.#frozenAt ?? this.#clock.monotonic()) - this.#behind;
  }

  #start(entry: Entry): void {
    const ms = Math.max(0, entry.due - this.#monotonic());
    entry.timer = this.#clock.setTimer(ms, () => {
      if (this.#dead || this.frozen) return;
      this.#timers.delete(entry);
      entry.fn();
    });
  }

  #untilDeath<V>(promise: Promise<V>): Promise<V> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        if (this.#dead) return;
        if (this.frozen) this.#held.push(act);
        else act();
      };
      promise.then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error as Error)),
      );
    });
  }
}
