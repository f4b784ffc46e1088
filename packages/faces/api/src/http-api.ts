import type { Server as TlsServer } from "node:tls";
import type { IssuerConfig } from "@nodeyard/config";
import type { FastifyInstance } from "fastify";
import { fetchJson } from "./edge/fetch-json.ts";
import { listenTcp, listenUnix } from "./edge/listen.ts";
import { readTls, type TlsFiles } from "./edge/tls.ts";
import { type Body, FRESH_MS } from "./http/reply.ts";
import { ShortCache } from "./http/short-cache.ts";
import type { AppParts, Known } from "./known.ts";
import type { EventHub } from "./v1/event-hub.ts";
import type { Issuers } from "./v1/issuers.ts";

/** What an app is made with, without what is made here once for all listeners. */
type Handles = Omit<AppParts, "answers" | "hub" | "address" | "issuers">;

/** Different answers that are kept for a second, at most: with `fields` a client can ask for as many as it likes. */
const MAX_ANSWERS = 128;

/** Where to listen. `token`: what clients have to present there; absent: none, and then they see less (api/http/caller.ts). */
export type ListenAddress =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly token?: string; readonly tls?: TlsFiles };

/**
 * The HTTP interface of a process, at any number of places, which share answers, events and issuers. Made by `Front` before the
 * process knows anything; it serves 503 until then.
 */
export class HttpApi {
  readonly #handles: Handles;
  readonly #answers: ShortCache<Body>;
  /** Made when the first client follows, or when clients of an earlier process may come back. */
  #hub: EventHub | undefined;
  /** The class, once the server's modules are loaded; undefined: nothing listens. */
  #Hub: typeof EventHub | undefined;
  #issuers: Issuers | undefined;
  /** Kept for the first `listen`, which makes the issuers. */
  #trusted: readonly IssuerConfig[] = [];
  /** Listeners by address, as `listen` returned it. */
  readonly #apps = new Map<string, { readonly app: FastifyInstance; readonly tls: TlsFiles | undefined }>();

  constructor(handles: Handles) {
    this.#handles = handles;
    this.#answers = new ShortCache(handles.clock, FRESH_MS, MAX_ANSWERS);
  }

  /** Resolves with the address when it listens there. Rejects with ListenError. */
  async listen(place: ListenAddress): Promise<string> {
    // Not before: commands that serve nothing start sooner without an HTTP server.
    const { createApp, EventHub: Hub, Issuers: All } = await import("./app.ts");
    this.#issuers ??= new All(this.#handles.clock, fetchJson);
    this.#issuers.configure(this.#trusted);
    const issuers = this.#issuers;
    this.#Hub = Hub;
    const hub = (known: Known) => (this.#hub ??= this.#newHub(Hub, known));
    const address = () => [...this.#apps.keys()].find((one) => !one.startsWith("unix:")) ?? null;
    const parts = { ...this.#handles, issuers, answers: this.#answers, hub, address };
    const token = "token" in place ? { token: place.token } : {};
    const files = "tls" in place ? place.tls : undefined;
    const tls = files && readTls(files);
    const app = createApp(parts, { bySocket: "socket" in place, ...token, ...(tls && { tls }) });
    const where =
      "socket" in place ? await listenUnix(app, place.socket) : await listenTcp(app, place.host, place.port);
    this.#apps.set(where, { app, tls: files });
    return where;
  }

  /**
   * The view has been read, and the process has not acted yet. Clients that followed the process before come back: what happens from here
   * on is kept for them.
   */
  seen(known: Known): void {
    if (this.#Hub !== undefined && known.events?.exists === true)
      this.#hub ??= this.#newHub(this.#Hub, known);
  }

  /** Changes are stored only where the process has a folder of its own. */
  #newHub(Hub: typeof EventHub, { view, handles, events: file }: Known): EventHub {
    const { clock, random } = handles;
    return new Hub(view, { clock, random, ...(file && { stored: { file, log: this.#handles.log } }) });
  }

  /**
   * From now on the tokens of these issuers count, and of no other. Sessions by the tokens of an issuer that is gone or changed
   * have ended.
   */
  trust(issuers: readonly IssuerConfig[]): void {
    this.#trusted = issuers;
    this.#issuers?.configure(issuers);
  }

  /** Reads certificates again; connections that are open stay as they are. Throws ListenError, and the former ones stay in use. */
  reloadTls(): void {
    for (const { app, tls } of this.#apps.values())
      if (tls !== undefined) (app.server as unknown as TlsServer).setSecureContext(readTls(tls));
  }

  /** Closes a listener and its connections. An unknown address is none of ours, or closed already: nothing happens. */
  async leave(address: string): Promise<void> {
    const open = this.#apps.get(address);
    this.#apps.delete(address);
    await open?.app.close();
  }

  /** Ends streams first, and then all listeners. */
  async close(): Promise<void> {
    this.#hub?.close();
    await Promise.all([...this.#apps.keys()].map((address) => this.leave(address)));
  }
}
