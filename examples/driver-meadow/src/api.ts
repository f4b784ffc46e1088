import {
  type Clock,
  type DriverContext,
  HttpCalls,
  type HttpRequest,
  type Metadata,
  NoAnswer,
  RenewedValue,
  safeRetry,
  unlessRefused,
  type Wire,
} from "@nodeyard/driver";

/** A machine, an address or an image: what the cloud lists. */
export interface Thing {
  readonly id: string;
  readonly state: "starting" | "running" | "stopping" | "failed" | "open" | "busy" | "ready";
  readonly labels: Metadata;
  readonly size: string;
  readonly zone: string;
  readonly host: string;
  readonly port: number;
  /** Of an address: where it is attached. */
  readonly machine: string | null;
  /** Of an image. */
  readonly sha256: string;
}

/** The calls of one account, which signs in by a token in a file. */
export class MeadowApi {
  readonly #url: (path: string) => string;
  readonly #observe: DriverContext["observe"];
  readonly #token: RenewedValue<string>;
  readonly #calls: HttpCalls<string>;

  constructor(
    endpoint: string,
    { send }: Pick<Wire, "send">,
    readToken: () => string,
    { clock, random, observe }: Pick<DriverContext, "random" | "observe"> & { clock: Clock },
  ) {
    this.#url = (path) => `${endpoint}${path}`;
    this.#observe = observe;
    this.#token = new RenewedValue({
      clock,
      load: async () => readToken().trim(),
      endOf: () => null,
      secretsOf: (token) => [token],
      loadMs: 10_000,
      late: () => new NoAnswer("the token was not read in time"),
    });
    this.#calls = new HttpCalls({
      ...{ clock, send },
      login: (signal) => this.#token.get(signal),
      refused: (token) => this.#token.replace(token),
      fault: ({ text }) => {
        const { code = "", message } = JSON.parse(text) as { code?: string; message: string };
        return { codes: [code], text: message };
      },
      again: (failed) => (failed.request ? safeRetry(failed, clock.now(), random).retryMs : null),
    });
  }

  call<T = Thing>(
    method: HttpRequest["method"],
    path: string,
    signal: AbortSignal,
    body?: object,
  ): Promise<T> {
    const request = (token: string) => ({
      ...{ method, url: this.#url(path) },
      headers: { authorization: `Bearer ${token}` },
      ...(body && { body: JSON.stringify(body) }),
    });
    const operation = `${method}.${path.split("/")[1]}`;
    return this.#calls.call({ operation, request, signal, observe: this.#observe }, ({ text }) =>
      JSON.parse(text),
    );
  }

  /** All pages of a list. */
  async list<T = Thing>(kind: string, signal: AbortSignal): Promise<readonly T[]> {
    const all: T[] = [];
    for (let next: string | undefined = `/${kind}`; next !== undefined; ) {
      const page: { all: readonly T[]; next?: string } = await this.call("GET", next, signal);
      all.push(...page.all);
      next = page.next;
    }
    return all;
  }

  async delete(path: string, signal: AbortSignal): Promise<void> {
    await unlessRefused(this.call("DELETE", path, signal));
  }
}
