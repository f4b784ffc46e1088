import { DriverError, keepSecret, RenewedValue } from "@nodeyard/driver";
import type { sdk } from "../edge/sdk.ts";
import type { PaceContext } from "./pace.ts";

/** Endpoint and credentials of calls. */
export interface Place {
  /** Null: the region of the profile or the environment. */
  readonly region: string | null;
  /** Another endpoint with its own credentials, for tests. */
  readonly client?: { readonly endpoint: string; readonly credentials: () => Promise<AwsCredentials> };
  /**
   * Null: the SDK's credential chain (environment, files, container, instance). Assumed roles and web identities come from the profile or
   * the chain.
   */
  readonly profile: string | null;
  /** Keys in variables, which sign although the profile has some. */
  readonly keysOfEnvironment?: boolean;
  /** Time limit of an attempt, milliseconds, for tests. */
  readonly tryMs?: number;
}

/** Credentials that sign requests. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** Time limit of finding credentials, milliseconds: a plugin or another service may be asked. */
const LOAD_MS = 60_000;
/** Codes of credentials that were valid once, or may be the former ones of a file that has new ones. */
const AGED =
  /^(ExpiredToken|RequestExpired|InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId|AuthFailure)/;

/** The credentials of a place, shared by its services and regions. The SDK reads its files once in the life of a process. */
export class Login {
  readonly #value: RenewedValue<AwsCredentials>;

  constructor(
    { client, profile, region, keysOfEnvironment }: Place,
    modules: typeof sdk,
    { clock }: Pick<PaceContext, "clock">,
  ) {
    this.#value = new RenewedValue({
      clock,
      async load() {
        if (client !== undefined) return client.credentials();
        const { defaultProvider } = await modules.credentials();
        // Without a profile's name the chain begins at the environment.
        const search = {
          ignoreCache: true,
          ...(profile !== null && { profile: keysOfEnvironment ? "" : profile }),
        };
        const { ProxiedHandler } = await modules.handler();
        const { ca } = await (await modules.settings()).settingsOf(profile, "sts");
        const limits = { requestTimeout: LOAD_MS, throwOnRequestTimeout: true };
        const requestHandler = new ProxiedHandler({ ...limits, ...(ca && { ca }) });
        const clientConfig = { requestHandler, ...(region !== null && { region }) };
        // Made anew, because one remembers what it has found.
        return defaultProvider({ ...search, clientConfig })().finally(() => requestHandler.destroy());
      },
      endOf: ({ expiration }) => expiration?.getTime() ?? null,
      loadMs: LOAD_MS,
      late: () => new DriverError("access", `no credentials within ${LOAD_MS} ms; check credential_process`),
    });
  }

  /** For the clients of the SDK. With an end that has passed: a client keeps any others for ever, and would not ask here again. */
  readonly provider = async (): Promise<AwsCredentials> => {
    const found = await this.#value.get();
    keepSecret(found.secretAccessKey);
    keepSecret(found.sessionToken);
    return { ...found, expiration: new Date(0) };
  };

  /** Whether a call that was refused with this code may be repeated with credentials that are read again. */
  mayRenew(code: string): boolean {
    if (!AGED.test(code)) return false;
    this.#value.refused();
    return true;
  }

  close(): void {
    this.#value.close(new DriverError("transient", "the account is not used any more"));
  }
}
