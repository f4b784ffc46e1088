/** An answer of a server of Boskos. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** A resource as an acquire answers. */
export interface AnsweredResource {
  readonly type: string;
  readonly name: string;
  readonly state: string;
  readonly owner: string;
  readonly lastupdate: string;
  readonly userdata: Readonly<Record<string, string>>;
}

type Query = Readonly<Record<string, string>>;

/** Calls a server of Boskos as its clients do: parameters in the query, userdata as body. */
export class BoskosCaller {
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.url = url;
    this.#headers = headers;
  }

  async call(method: string, path: string, query: Query = {}, body?: string): Promise<Answer> {
    const reply = await fetch(`${this.url}${path}?${new URLSearchParams(query)}`, {
      method,
      headers: { "content-type": "application/json", ...this.#headers },
      ...(body !== undefined && { body }),
    });
    return { status: reply.status, text: await reply.text() };
  }

  post(path: string, query?: Query, body?: string): Promise<Answer> {
    return this.call("POST", path, query, body);
  }

  /** Undefined: none is free. */
  async acquire(query: Query): Promise<AnsweredResource | undefined> {
    const { status, text } = await this.post("/acquire", {
      state: "free",
      dest: "busy",
      owner: "me",
      ...query,
    });
    if (status === 200) return JSON.parse(text) as AnsweredResource;
    if (status === 404) return undefined;
    throw new Error(`acquire: ${status} ${text}`);
  }
}
