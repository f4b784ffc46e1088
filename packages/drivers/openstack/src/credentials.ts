import {
  type Account,
  type Clock,
  CloudConfigError,
  Connections,
  isCertificateError,
  type Random,
  RateLimiter,
  RenewedValue,
  SharedAccounts,
  type Wire,
} from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { Session } from "./client/index.ts";
import type { Cloud } from "./clouds/index.ts";

/** How a session sends its requests. */
export type Sender = Pick<Wire, "send" | "close">;

/** A provider's share of the session of its credential. */
export interface Lease {
  readonly cloud: Cloud;
  readonly session: Session;
  release(): Promise<void>;
}

/** What a session is opened with. Of providers that share one, the first one's handles, certificates and credential reader are used. */
export interface LeaseOrder {
  readonly clock: Clock;
  readonly random: Random;
  readonly cloud: Cloud;
  /** Reads the cloud's entry again; called for each login. */
  readonly reread: () => Cloud;
  /** Reads its certificate files again; called each minute, and when a certificate could not be verified. */
  readonly tls: () => TlsOptions;
  /** The provider's own limit: least time between two calls, milliseconds; null for none. */
  readonly intervalMs: number | null;
}

/** Time limit of reading certificate files, milliseconds. */
const LOAD_MS = 60_000;

interface Customer extends Account {
  readonly session: Session;
}

/** The sessions by credential. Each has one token, its connections and one rate limit. */
export class Credentials {
  readonly #connect: (tls: TlsOptions) => Sender;
  readonly #customers = new SharedAccounts<Customer>();

  constructor(connect: (tls: TlsOptions) => Sender) {
    this.#connect = connect;
  }

  /**
   * A share of the session for the credential, which is opened for its first provider. The strictest rate of all providers
   * counts. Reads no file and connects to nothing.
   */
  lease(order: LeaseOrder): Lease {
    const { clock, cloud } = order;
    // `rate_limit` of clouds.yaml is calls per second.
    const fromFile = cloud.rateLimit === null ? 0 : 1_000 / cloud.rateLimit;
    const intervalMs = Math.max(order.intervalMs ?? 0, fromFile);
    const share = this.#customers.share(clock, keyOf(order), intervalMs, () => this.#open(order));
    return { cloud, session: share.account.session, release: share.release };
  }

  #open({ clock, random, reread, tls, cloud }: LeaseOrder): Customer {
    const connections = new Connections(this.#connect);
    const certificates = new RenewedValue({
      clock,
      load: async () => tls(),
      endOf: () => null,
      loadMs: LOAD_MS,
      late: () => new CloudConfigError(`cloud ${cloud.name}: its certificates were not read in time`),
    });
    const send: Wire["send"] = async (request) => {
      try {
        return await connections.of(await certificates.get()).send(request);
      } catch (error) {
        if (isCertificateError(error)) certificates.refused();
        throw error;
      }
    };
    // `SharedAccounts` sets the interval right after this, and again whenever a provider comes or goes.
    const limiter = new RateLimiter({ clock, intervalMs: 0 });
    const session = new Session({ credential: () => reread().credential, limiter, send, clock, random });
    return {
      session,
      limit: (intervalMs) => limiter.configure(intervalMs),
      async close() {
        const closed = new CloudConfigError(`cloud ${cloud.name} is not used any more`);
        session.close(closed);
        certificates.close(closed);
        await connections.close();
      },
    };
  }
}

/** Identifies the customer that has the quota and the rate limit. Secrets are left out: a changed secret is still the same customer. */
function keyOf({ cloud }: LeaseOrder): string {
  const { password, token, application_credential_secret, ...rest } = cloud.credential.values;
  const who = Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1));
  // The places of certificates are part of it, because connections are made with them.
  return JSON.stringify([cloud.credential.type, who, cloud.tls, token === undefined ? "" : "token"]);
}
