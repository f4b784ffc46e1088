import { type HttpAnswer, type HttpRequest, isStream, type Wire } from "@nodeyard/driver";
import { type Exchange, keyOf, parsed, questionOf, type Recording } from "./exchange.ts";

/** A cloud that gives the recorded answers, each once and in their order, and refuses every other call. */
export class Player {
  readonly #left = new Map<string, Exchange[]>();
  readonly unexpected: string[] = [];

  constructor({ exchanges }: Recording) {
    for (const exchange of exchanges) {
      const key = keyOf(exchange);
      this.#left.set(key, [...(this.#left.get(key) ?? []), exchange]);
    }
  }

  /** Recorded calls that nobody made. */
  get unused(): readonly string[] {
    return [...this.#left].flatMap(([key, exchanges]) => exchanges.map(() => key));
  }

  connect(): Pick<Wire, "send" | "close"> {
    return { send: (request) => this.#send(request), close: async () => {} };
  }

  async #send(request: HttpRequest): Promise<HttpAnswer> {
    const key = keyOf(questionOf(request, await sentOf(request)));
    const exchange = this.#left.get(key)?.shift();
    if (exchange === undefined) {
      this.unexpected.push(key);
      throw new Error(`unexpected call ${key}`);
    }
    const { status, headers, body } = exchange;
    return { status, headers, text: typeof body === "string" ? body : JSON.stringify(body) };
  }
}

/** What a request carries; a stream is read to its end, as a server does. */
export async function sentOf({ body }: HttpRequest): Promise<unknown> {
  if (body === undefined) return null;
  if (typeof body === "string") return parsed(body);
  if (!isStream(body)) return { bytes: body.byteLength };
  let bytes = 0;
  for await (const part of body) bytes += part.byteLength;
  return { bytes };
}
