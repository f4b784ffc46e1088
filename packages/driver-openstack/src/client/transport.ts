/** One HTTP exchange; the only thing of the client that touches the network, so it is passed in. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** A response, read whole. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; the first value of each. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Rejects with the signal's reason, or with whatever the network says. */
export type Send = (request: HttpRequest) => Promise<HttpResponse>;

/** How to speak TLS to a cloud; contents of files, not paths. */
export interface TlsOptions {
  readonly verify: boolean;
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
}

/** A transport and its connections. */
export interface Transport {
  readonly send: Send;
  close(): Promise<void>;
}
