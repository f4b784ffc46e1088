import {
  allPages,
  type BearerToken,
  bearerRequest,
  jsonIn,
  type Metadata,
  Session,
  type SessionHost,
  type Unsent,
  unlessRefused,
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

/** The calls of one account. */
export class MeadowApi extends Session<BearerToken> {
  readonly #endpoint: string;

  constructor(endpoint: string, readToken: () => string, host: SessionHost) {
    super({
      ...{ ...host, by: "the file of token-file", endOf: () => null },
      signIn: async () => ({ text: readToken(), end: null }),
      fault: ({ text }) => {
        const { code = "", message } = jsonIn(text);
        return { codes: [String(code)], text: String(message) };
      },
    });
    this.#endpoint = endpoint;
  }

  call<T = Thing>(method: Unsent["method"], path: string, signal: AbortSignal, body?: object): Promise<T> {
    const request = ({ text }: BearerToken) =>
      bearerRequest(method, `${this.#endpoint}${path}`, text, { body });
    const operation = `${method}.${path.split("/")[1]}`;
    return this.calls.call({ operation, request, signal }, ({ text }) => JSON.parse(text));
  }

  /** All pages of a list. */
  async list<T = Thing>(kind: string, signal: AbortSignal): Promise<readonly T[]> {
    type Page = { readonly all: readonly T[]; readonly next?: string };
    const read = (next = `/${kind}`) => this.call<Page>("GET", next, signal);
    return (await allPages(`list of ${kind}`, read, ({ next }) => next)).flatMap(({ all }) => all);
  }

  async delete(path: string, signal: AbortSignal): Promise<void> {
    await unlessRefused(this.call("DELETE", path, signal));
  }
}
