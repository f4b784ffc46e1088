/** One HTTP request. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is read once, so such a request is never repeated. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** A response with its complete body. */
export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case; of a repeated header the first value. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** An HTTP client with persistent connections (`wireOf`). Tests have one of their own. */
export interface Wire {
  /** Rejects with the signal's reason or with the error of the network. */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Resolves when the response begins; its body is read as it arrives, and fails after minutes of silence. */
  stream(request: HttpRequest): Promise<{
    readonly status: number;
    readonly body: AsyncIterable<Uint8Array>;
    text(): Promise<string>;
  }>;
  /** Accepts no further requests, and resolves when those under way have ended. */
  close(): Promise<void>;
}

/** What a call sends, once the login is known. */
export type Unsent = Omit<HttpRequest, "signal">;

/** What few requests have. A body that is an object, other than bytes, is sent as JSON. */
export interface RequestParts {
  readonly query?: Readonly<Record<string, string | number>> | undefined;
  readonly body?: object | string | Uint8Array | undefined;
  readonly headers?: Unsent["headers"] | undefined;
}

/** A request of an API that answers in JSON. */
export function jsonRequest(
  method: Unsent["method"],
  url: string,
  { query = {}, body, headers }: RequestParts = {},
): Unsent {
  const words = new URLSearchParams(query as Readonly<Record<string, string>>);
  const isJson = typeof body === "object" && !(body instanceof Uint8Array);
  const type = isJson && { "content-type": "application/json" };
  return {
    ...{ method, url: words.size === 0 ? url : `${url}?${words}` },
    headers: { accept: "application/json", ...type, ...headers },
    ...(body !== undefined && { body: isJson ? JSON.stringify(body) : body }),
  };
}

/** The same of an API that takes a bearer token. */
export function bearerRequest(
  method: Unsent["method"],
  url: string,
  token: string,
  parts: RequestParts = {},
): Unsent {
  return jsonRequest(method, url, {
    ...parts,
    headers: { authorization: `Bearer ${token}`, ...parts.headers },
  });
}

/** Whether a body can be read only once. */
export function isStream(body: HttpRequest["body"]): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}

/** The fields of a text in JSON; none for any other text, as a proxy answers. */
export function jsonIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
