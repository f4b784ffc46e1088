import type { Clock, Timer } from "@nodeyard/runtime";

/**
 * What a process holds while it lives. When it dies, none of it ever settles, fires or answers again: what its code still
 * awaits, it awaits for ever.
 */
export class Life {
  #dead = false;

  get dead(): boolean {
    return this.#dead;
  }

  end(): void {
    this.#dead = true;
  }

  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      setTimer: (ms, fn, options): Timer => {
        if (this.#dead) return { cancel() {} };
        return clock.setTimer(
          ms,
          () => {
            if (!this.#dead) fn();
          },
          options,
        );
      },
    };
  }

  /** The same object, whose promises stop settling at the end of this life. Calls already made take their effect. */
  guard<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name, object);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (this.#dead) return new Promise(() => {});
          const result: unknown = Reflect.apply(value, object, args);
          return result instanceof Promise ? this.#mortal(result) : result;
        };
      },
    });
  }

  #mortal<V>(promise: Promise<V>): Promise<V> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => {
          if (!this.#dead) resolve(value);
        },
        (error: unknown) => {
          if (!this.#dead) reject(error as Error);
        },
      );
    });
  }
}
