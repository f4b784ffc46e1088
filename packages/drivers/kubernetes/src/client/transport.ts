/** Connection settings of one API server. Certificates are contents, not paths. */
export interface Route {
  /** False: the server's certificate is not checked (`insecure-skip-tls-verify`). */
  readonly verify: boolean;
  /** PEM of the authorities that may sign the server's certificate; null: the system's. */
  readonly ca: string | null;
  /** PEM of a client certificate; `key` is the PEM of its key. */
  readonly cert: string | null;
  readonly key: string | null;
  /** Name in the server's certificate when it differs from the host of the address. */
  readonly serverName: string | null;
  /** `http://`, `https://` or `socks5://`. */
  readonly proxy: string | null;
}

/** One HTTP exchange. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** HTTP with persistent connections. The client uses the network only through this interface, so tests can replace it. */
export interface Transport {
  /** Resolves to the complete response. Rejects with the signal's reason or with the error of the network. */
  send(request: HttpRequest): Promise<{ readonly status: number; readonly text: string }>;
  /** Resolves when the response begins; its body is read as it arrives. */
  stream(
    request: HttpRequest,
  ): Promise<{ readonly status: number; readonly body: AsyncIterable<Uint8Array>; text(): Promise<string> }>;
  /** Accepts no further requests, and resolves when those under way have ended. */
  close(): Promise<void>;
}
