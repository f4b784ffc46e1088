import type { HttpRequest } from "@nodeyard/driver/http";

export type { HttpRequest, TlsOptions } from "@nodeyard/driver/http";

/** A response with its complete body. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; of a repeated header the first value. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends a request. Rejects with the signal's reason or with the network's error. */
export type Send = (request: HttpRequest) => Promise<HttpResponse>;

/** An HTTP client and its connections. */
export interface Transport {
  readonly send: Send;
  /** Ends the connections when the requests under way have ended. */
  close(): Promise<void>;
}
