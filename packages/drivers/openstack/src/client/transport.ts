/** An HTTP request. The transport is the client's only access to the network, so it is passed in. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is read once, so such a request is never repeated. */
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** A response with its complete body. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; of a repeated header the first value. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends a request. Rejects with the signal's reason or with the network's error. */
export type Send = (request: HttpRequest) => Promise<HttpResponse>;

/** TLS options of a cloud; contents of files, not paths. */
export interface TlsOptions {
  /** False: the server's certificate is not checked. */
  readonly verify: boolean;
  /** PEM of the authorities; null: the system's. */
  readonly ca: string | null;
  /** PEM of a client certificate; `key` is the PEM of its private key. */
  readonly cert: string | null;
  readonly key: string | null;
}

/** An HTTP client and its connections. */
export interface Transport {
  readonly send: Send;
  /** Ends the connections when the requests under way have ended. */
  close(): Promise<void>;
}
