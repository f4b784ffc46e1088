import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { textIfExists } from "@nodeyard/runtime";
import { Agent, type Dispatcher, ProxyAgent, request, Socks5ProxyAgent, WebSocket } from "undici";
import type { CloudHost } from "../cloud-driver.ts";
import type { Around } from "../sign-in.ts";
import { type HttpRequest, isStream, type Wire } from "../wire.ts";
import { proxyOf } from "./proxy.ts";

/** Time for TCP and TLS, milliseconds. Without it a server that drops packets would use up the whole time of an attempt. */
const CONNECT_MS = 15_000;
/** A stream that says nothing for so long, milliseconds, is lost: watches have a sign of life each minute. */
const SILENCE_MS = 150_000;

/** By what a server is verified, and known to it who calls. */
export interface TlsOptions {
  /** False: the server's certificate is not checked. */
  readonly verify: boolean;
  /** PEM of the authorities that may sign the server's certificate; null: the system's. */
  readonly ca: string | null;
  /** PEM of a client certificate; `key` is the PEM of its private key. */
  readonly cert: string | null;
  readonly key: string | null;
  /** Name in the server's certificate when it differs from the host of the address. */
  readonly serverName?: string | null;
  /** Path of the socket on which the server listens on this host, whatever its address says. */
  readonly socketPath?: string | null;
}

/** What a server sends over a WebSocket. */
export interface Listener {
  onText(text: string): void;
  /** It was closed, by either side, after it was open. */
  onEnd(): void;
  /** Closes it. */
  readonly signal: AbortSignal;
}

/** A server that an authority of this host vouches for, and that learns by other means who calls. */
export const USUAL_TLS: TlsOptions = { verify: true, ca: null, cert: null, key: null };
/** Connections to one server at once. */
const CONNECTIONS = 16;
/** Bytes per read of an upload. */
const CHUNK = 1 << 20;

/**
 * Environment, files and network of this host: connections that it vouches for, by the proxies that the official client of a cloud uses. No
 * proxy is used for addresses that are `direct`.
 */
export function usualHost(
  client: Parameters<typeof proxyOf>[2],
  direct: (url: string, env: Around["env"]) => boolean = () => false,
): CloudHost {
  const { env } = process;
  const proxyFor = (url: string) => (direct(url, env) ? null : proxyOf(url, env, client));
  return { around: { env, read: textIfExists }, connect: () => wireOf(USUAL_TLS, proxyFor), openFile };
}

/** Reads a file of this host. */
export const openFile = (path: string) => createReadStream(path, { highWaterMark: CHUNK });

/**
 * Persistent connections, directly or through a proxy (`http://`, `https://`, `socks5://`). An upload takes longer than undici allows, so
 * only connecting has a limit, and the silence of a stream.
 */
function dispatcherOf(
  { verify, ca, cert, key, serverName = null, socketPath = null }: TlsOptions,
  proxy: string | null,
  connections: number,
): Dispatcher {
  const tls = {
    rejectUnauthorized: verify,
    ...(ca !== null && { ca }),
    ...(cert !== null && { cert }),
    ...(key !== null && { key }),
    ...(serverName !== null && { servername: serverName }),
    ...(socketPath !== null && { socketPath }),
  };
  // HTTP/2 is off: undici's implementation crashes the process when a stream is aborted while its client closes.
  const common = { connections, allowH2: false };
  if (proxy === null) return new Agent({ ...common, connect: { timeout: CONNECT_MS, ...tls } });
  if (proxy.startsWith("socks5"))
    return new Socks5ProxyAgent(proxy, { ...common, requestTls: tls } as object);
  return new ProxyAgent({ ...common, uri: proxy, requestTls: tls });
}

/**
 * An HTTP client through the proxy that `proxyFor` names for an address; null: none. At most `connections` to a server. Only connecting and
 * the silence of a stream have a limit of time; callers bound their calls by signals.
 */
export function wireOf(
  tls: TlsOptions,
  proxyFor: (url: string) => string | null,
  connections = CONNECTIONS,
): Wire & { listen(url: string, listener: Listener): Promise<void> } {
  const dispatchers = new Map<string | null, Dispatcher>();
  const dispatcherFor = (url: string) => {
    const proxy = proxyFor(url);
    const dispatcher = dispatchers.get(proxy) ?? dispatcherOf(tls, proxy, connections);
    dispatchers.set(proxy, dispatcher);
    return dispatcher;
  };
  const ask = async ({ method, url, headers, body, signal }: HttpRequest, silenceMs = 0) => {
    signal.throwIfAborted();
    return request(url, {
      dispatcher: dispatcherFor(url),
      method,
      headers: { ...headers },
      signal,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      ...(body !== undefined && { body: isStream(body) ? Readable.from(body) : body }),
    });
  };
  return {
    async send(one) {
      const { statusCode: status, headers, body } = await ask(one);
      const single = Object.entries(headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, Array.isArray(value) ? value[0]! : value] as const],
      );
      return { status, headers: Object.fromEntries(single), text: await body.text() };
    },
    async stream(one) {
      const { statusCode: status, body } = await ask(one, SILENCE_MS);
      return { status, body, text: () => body.text() };
    },
    /** Opens a WebSocket; resolves when it is open. */
    listen: (url, { onText, onEnd, signal }) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const socket = new WebSocket(url, { dispatcher: dispatcherFor(url) });
        const close = () => socket.close();
        signal.addEventListener("abort", close, { once: true });
        socket.onopen = () => resolve();
        socket.onmessage = ({ data }) => onText(String(data));
        socket.onerror = ({ error }) => reject(error);
        socket.onclose = () => {
          signal.removeEventListener("abort", close);
          reject(new Error(`${url} was closed before it was open`));
          onEnd();
        };
      }),
    close: async () => void (await Promise.all([...dispatchers.values()].map((one) => one.close()))),
  };
}
