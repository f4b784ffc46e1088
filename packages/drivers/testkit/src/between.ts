import { type Clock, sleep, systemClock, type Timer } from "@nodeyard/runtime";
import type { ConformanceRig } from "./rig.ts";

/** The system's clock, put forward by a test: limits of time pass, and nothing waits for them. Wall time stays what it is. */
export class HurriedClock implements Clock {
  #aheadMs = 0;
  readonly #again = new Set<() => void>();

  now(): number {
    return systemClock.now();
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#aheadMs;
  }

  setTimer(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer {
    const at = this.monotonic() + ms;
    const end = () => {
      this.#again.delete(again);
      fn();
    };
    const set = () => systemClock.setTimer(Math.max(0, at - this.monotonic()), end, options);
    let timer = set();
    const again = () => {
      timer.cancel();
      timer = set();
    };
    this.#again.add(again);
    return {
      cancel: () => {
        timer.cancel();
        this.#again.delete(again);
      },
    };
  }

  forward(ms: number): void {
    this.#aheadMs += ms;
    for (const again of [...this.#again]) again();
  }
}

/** A request on its way to the far end. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** What requests of a driver are for. */
export interface Meaning {
  /** It changes something at the far end. */
  readonly writes: (sent: Sent) => boolean;
  /** It makes a machine. */
  readonly makes: (sent: Sent) => boolean;
  /** It deletes a machine. */
  readonly removes: (sent: Sent) => boolean;
  /** It lists machines. */
  readonly lists: (sent: Sent) => boolean;
}

/** Headers that drivers log in with. */
const SECRET = ["authorization", "x-auth-token"];
/** Steps in which time goes on while nobody answers, so that the shortest limit of a driver ends first. */
const STEP_MS = 5_000;

/** Stands between a driver and its far end, which is a real one, and does with requests what a test wants. */
export class Between {
  readonly clock = new HurriedClock();
  readonly #meaning: Meaning;
  readonly #secrets = new Set<string>();
  #writes = 0;
  #fault: ((sent: Sent) => Promise<Reply> | undefined) | undefined;
  #isEmpty = false;

  constructor(meaning: Meaning) {
    this.#meaning = meaning;
  }

  /** Undefined: the far end is to answer. */
  async answer(sent: Sent): Promise<Reply | undefined> {
    if (this.#meaning.writes(sent)) this.#writes++;
    for (const name of SECRET) {
      const secret = sent.headers[name]?.split(" ").at(-1);
      if (secret !== undefined) this.#secrets.add(secret);
    }
    return this.#fault?.(sent);
  }

  /** The answer to a request: the far end's, by `pass`, or what a test wants. */
  async send(sent: Sent, pass: () => Promise<Reply>): Promise<Reply> {
    const instead = await this.answer(sent);
    if (instead !== undefined) return instead;
    const reply = await pass();
    return this.#isEmpty && this.#meaning.lists(sent) ? { ...reply, text: emptied(reply.text) } : reply;
  }

  /** What a rig has of it. */
  faults(): Required<
    Pick<ConformanceRig, "writes" | "refuse" | "silence" | "quoteSecrets" | "denyRemoval" | "emptyList">
  > {
    const { makes, removes } = this.#meaning;
    const once = (fits: (sent: Sent) => boolean, answer: (sent: Sent) => Promise<Reply>) => async () => {
      this.#fault = (sent) => {
        if (!fits(sent)) return undefined;
        this.#fault = undefined;
        return answer(sent);
      };
    };
    return {
      writes: async () => this.#writes,
      refuse: async () => {
        this.#fault = async () => error(401, "the credential is refused");
      },
      silence: once(makes, (sent) => this.#never(sent)),
      denyRemoval: once(removes, async () => error(404, "there is none")),
      quoteSecrets: async () => {
        const secrets = [...this.#secrets];
        this.#fault = async () => error(400, `cannot read ${secrets.join(" ")}`);
        return secrets;
      },
      emptyList: async () => {
        this.#isEmpty = true;
        return async () => {
          this.#isEmpty = false;
        };
      },
    };
  }

  async #never({ signal }: Sent): Promise<never> {
    while (!signal.aborted) {
      this.clock.forward(STEP_MS);
      // After the timers that have become due.
      await sleep(systemClock, 1);
    }
    throw signal.reason;
  }
}

function error(status: number, message: string): Reply {
  return { status, headers: { "content-type": "application/json" }, text: JSON.stringify({ message }) };
}

/** The same answer without the members of its lists. */
function emptied(text: string): string {
  const members = Object.entries(JSON.parse(text) as object);
  return JSON.stringify(
    Object.fromEntries(members.map(([name, value]) => [name, Array.isArray(value) ? [] : value])),
  );
}
