import type { FastifyInstance } from "fastify";
import { listenTcp, listenUnix } from "./edge/listen.ts";
import { type Body, FRESH_MS } from "./http/reply.ts";
import { ShortCache } from "./http/short-cache.ts";
import type { AppParts, Known } from "./known.ts";
import type { EventHub } from "./v1/event-hub.ts";

type Handles = Omit<AppParts, "answers" | "hub" | "address">;

/** Different answers that are kept for a second, at most. */
const MAX_ANSWERS = 128;

/** Where to listen. */
export type ListenAddress =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly token?: string };

/** The HTTP interface of a process, at any number of places. */
export class HttpApi {
  readonly #handles: Handles;
  readonly #answers: ShortCache<Body>;
  #hub: EventHub | undefined;
  readonly #apps = new Map<string, FastifyInstance>();

  constructor(handles: Handles) {
    this.#handles = handles;
    this.#answers = new ShortCache(handles.clock, FRESH_MS, MAX_ANSWERS);
  }

  /** Resolves with the address when it listens there. Rejects with ListenError. */
  async listen(place: ListenAddress): Promise<string> {
    // Not before: commands that serve nothing start sooner without an HTTP server.
    const { createApp, EventHub: Hub } = await import("./app.ts");
    const hub = ({ view, handles }: Known) => (this.#hub ??= new Hub(view, handles));
    const address = () => [...this.#apps.keys()].find((one) => !one.startsWith("unix:")) ?? null;
    const parts = { ...this.#handles, answers: this.#answers, hub, address };
    const token = "token" in place ? { token: place.token } : {};
    const app = createApp(parts, { bySocket: "socket" in place, ...token });
    const where =
      "socket" in place ? await listenUnix(app, place.socket) : await listenTcp(app, place.host, place.port);
    this.#apps.set(where, app);
    return where;
  }

  /** Listens there no longer; who is connected is cut off. */
  async leave(address: string): Promise<void> {
    const app = this.#apps.get(address);
    this.#apps.delete(address);
    await app?.close();
  }

  async close(): Promise<void> {
    this.#hub?.close();
    await Promise.all([...this.#apps.keys()].map((address) => this.leave(address)));
  }
}
