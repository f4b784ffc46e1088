/** How to speak to one API server; contents, not paths. */
export interface Route {
  readonly verify: boolean;
  /** PEM of the authorities that may sign the server; null: those of the system. */
  readonly ca: string | null;
  /** PEM of a client certificate and its key. */
  readonly cert: string | null;
  readonly key: string | null;
  /** Name that the server's certificate has, where it is not the host of the address. */
  readonly serverName: string | null;
  /** `http://`, `https://` or `socks5://`. */
  readonly proxy: string | null;
}

/** One HTTP exchange. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** The network as the client uses it; connections are kept. Passed in: nothing else of the client touches the network. */
export interface Transport {
  /** A response, read whole. Rejects with the signal's reason, or with whatever the network says. */
  send(request: HttpRequest): Promise<{ readonly status: number; readonly text: string }>;
  /** A response whose body is read as it comes. */
  stream(
    request: HttpRequest,
  ): Promise<{ readonly status: number; readonly body: AsyncIterable<Uint8Array>; text(): Promise<string> }>;
  close(): Promise<void>;
}
