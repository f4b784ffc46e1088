import type { Credential, ServiceLocation } from "../client/index.ts";

/** A network that clouds.yaml says something of (openstacksdk manual, "Network config"). */
export interface NetworkHint {
  /** Name or id. */
  readonly name: string;
  readonly external: boolean | null;
  readonly natDestination: boolean;
  readonly defaultInterface: boolean;
}

/** One cloud of clouds.yaml, with its region chosen and every default applied. */
export interface Cloud {
  /** What nodes show as their `cloud`. */
  readonly name: string;
  readonly credential: Credential;
  readonly place: ServiceLocation;
  readonly tls: {
    readonly verify: boolean;
    /** Paths. */
    readonly cacert: string | null;
    readonly cert: string | null;
    readonly key: string | null;
  };
  /** What uploads shall be: "qcow2", "raw". */
  readonly imageFormat: string;
  readonly floatingIps: boolean;
  /** Private addresses are the ones to use. */
  readonly private: boolean;
  readonly forceIpv4: boolean;
  readonly networks: readonly NetworkHint[];
  /** Properties that the vendor wants on every image. */
  readonly imageProperties: Readonly<Record<string, string>>;
  /** Calls per second that the file allows; null: it says nothing. */
  readonly rateLimit: number | null;
}
