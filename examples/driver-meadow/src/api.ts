import {
  allPages,
  type Clock,
  type DriverContext,
  type HttpRequest,
  type Metadata,
  Session,
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
export class MeadowApi extends Session<string> {
  readonly #url: (path: string) => string;
  readonly #observe: DriverContext["observe"];

  constructor(
    endpoint: string,
    { send, close }: Pick<Wire, "send" | "close">,
    readToken: () => string,
    { clock, random, observe }: Pick<DriverContext, "random" | "observe"> & { clock: Clock },
  ) {
    super({
      ...{ clock, random, send, close },
      by: "the file of token-file",
      signIn: async () => readToken().trim(),
      endOf: () => null,
      secretsOf: (token) => [token],
      fault: ({ text }) => {
        const { code = "", message } = JSON.parse(text) as { code?: string; message: string };
        return { codes: [code], text: message };
      },
    });
    this.#url = (path) => `${endpoint}${path}`;
    this.#observe = observe;
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
    return this.calls.call({ operation, request, signal, observe: this.#observe }, ({ text }) =>
      JSON.parse(text),
    );
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
