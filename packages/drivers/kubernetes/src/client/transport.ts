import type { HttpRequest, TlsOptions } from "@nodeyard/driver/http";

export type { HttpRequest } from "@nodeyard/driver/http";

/** Connection settings of one API server. Certificates are contents, not paths. */
export interface Route extends TlsOptions {
  /** `http://`, `https://` or `socks5://`. */
  readonly proxy: string | null;
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
