import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { connect, type TransportInit } from "../src/index.ts";

export interface Sent extends TransportInit {
  readonly path: string;
}

type Answer = Response | Error | "never";

/** A client whose calls a test answers, in virtual time. */
export class Server {
  readonly clock = new VirtualClock();
  readonly sent: Sent[] = [];
  readonly #answer: (sent: Sent) => Answer | Promise<Answer>;
  readonly client = connect("http://yard.test:8005/", {
    clock: this.clock,
    random: seededRandom(1),
    token: "secret",
    send: async (url, init) => {
      const sent = { ...init, path: url.replace("http://yard.test:8005", "") };
      this.sent.push(sent);
      const answer = await this.#answer(sent);
      if (answer instanceof Error) throw answer;
      if (answer !== "never") return answer;
      return new Promise((_, reject) => {
        const stop = () => reject(init.signal.reason);
        if (init.signal.aborted) stop();
        else init.signal.addEventListener("abort", stop);
      });
    },
  });

  constructor(answer: (sent: Sent) => Answer | Promise<Answer>) {
    this.#answer = answer;
  }

  /** Lets time pass until `work` has ended, a minute at most in steps of 100 ms unless told otherwise. */
  async pass<T>(work: Promise<T>, minutes = 1): Promise<T> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    work.then(end, end);
    for (let step = 0; step < minutes * 600 && !isOver; step++) {
      await this.clock.advance(100);
      // Bodies are read by turns of the event loop, of which virtual time knows nothing.
      await new Promise(setImmediate);
    }
    return isOver ? work : Promise.reject(new Error("it has not ended in time"));
  }

  get paths(): readonly string[] {
    return this.sent.map(({ method, path }) => `${method} ${path}`);
  }
}

export function json(value: unknown, status = 200): Response {
  return Response.json(value, { status });
}

export function problem(status: number, code: string, headers: Record<string, string> = {}): Response {
  return Response.json(
    { type: "", title: "", status, code, detail: `${code}: do this` },
    { status, headers },
  );
}
