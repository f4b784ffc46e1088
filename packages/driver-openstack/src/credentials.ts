import { type Clock, type Random, RateLimiter } from "@nodeyard/driver";
import { CloudConfigError, Keystone, Session, type TlsOptions, type Transport } from "./client/index.ts";
import type { Cloud } from "./clouds/index.ts";

/** A provider's hold on the session of its credential. */
export interface Lease {
  readonly cloud: Cloud;
  readonly session: Session;
  release(): Promise<void>;
}

export interface LeaseOrder {
  readonly clock: Clock;
  readonly random: Random;
  readonly cloud: Cloud;
  /** Reads the cloud's entry anew, for each login. */
  readonly reread: () => Cloud;
  readonly tls: TlsOptions;
  /** The provider's own limit between two calls, milliseconds; null: none. */
  readonly intervalMs: number | null;
}

interface Shared {
  readonly session: Session;
  readonly transport: Transport;
  readonly intervals: Map<symbol, number>;
}

/**
 * Sessions by credential. Providers with the same one share a token, connections and one rate limit, the strictest that any
 * of them has: to the cloud they are one customer. Kept per clock: two simulations in one process never meet.
 */
export class Credentials {
  readonly #connect: (tls: TlsOptions) => Transport;
  readonly #byClock = new WeakMap<Clock, Map<string, Shared>>();

  constructor(connect: (tls: TlsOptions) => Transport) {
    this.#connect = connect;
  }

  lease(order: LeaseOrder): Lease {
    const { cloud } = order;
    const key = keyOf(order);
    const all = this.#byClock.get(order.clock) ?? new Map<string, Shared>();
    this.#byClock.set(order.clock, all);
    const shared = all.get(key) ?? this.#open(order);
    all.set(key, shared);
    const own = Symbol(cloud.name);
    const fromFile = cloud.rateLimit === null ? 0 : 1_000 / cloud.rateLimit;
    shared.intervals.set(own, Math.max(order.intervalMs ?? 0, fromFile));
    const limit = () => shared.session.limiter.configure(Math.max(0, ...shared.intervals.values()));
    limit();
    return {
      cloud,
      session: shared.session,
      release: async () => {
        if (!shared.intervals.delete(own)) return;
        limit();
        if (shared.intervals.size > 0) return;
        all.delete(key);
        shared.session.close(new CloudConfigError(`cloud ${cloud.name} is not used any more`));
        await shared.transport.close();
      },
    };
  }

  #open({ clock, random, reread, tls }: LeaseOrder): Shared {
    const transport = this.#connect(tls);
    const { send } = transport;
    const keystone = new Keystone({ send, clock, credential: () => reread().credential });
    const limiter = new RateLimiter({ clock, intervalMs: 0 });
    return {
      session: new Session({ keystone, limiter, send, clock, random }),
      transport,
      intervals: new Map(),
    };
  }
}

/** Whose quota and whose rate it is. Secrets are not part of it: a changed one is the same customer. */
function keyOf({ cloud, tls }: LeaseOrder): string {
  const { password, token, application_credential_secret, ...rest } = cloud.credential.values;
  const who = Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([cloud.credential.type, who, tls, token === undefined ? "" : "token"]);
}
