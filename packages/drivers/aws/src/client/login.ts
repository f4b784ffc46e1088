import { type Clock, DriverError, RenewedValue } from "@nodeyard/driver";
import type { sdk } from "../edge/sdk.ts";
import { kitError } from "./errors.ts";

/** Region and credentials of calls. */
export type Place = ReturnType<typeof sdk.placeOf>;

/** Time limit of finding credentials, milliseconds: a plugin or another service may be asked. */
const LOAD_MS = 60_000;
/** Codes of credentials that were valid once, or may be the former ones of a file that has new ones. */
export const AGED =
  /^(ExpiredToken|RequestExpired|InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId|AuthFailure)/;

/** The credentials of a place, shared by its services and regions. The SDK reads its files once in the life of a process. */
export function credentialsOf(
  { profile, region, keysOfEnvironment }: Place,
  modules: typeof sdk,
  clock: Clock,
) {
  const found = async () => {
    const { defaultProvider } = await modules.credentials();
    const limits = { requestTimeout: LOAD_MS, throwOnRequestTimeout: true };
    const { requestHandler } = await modules.connectionOf(profile, "sts", limits);
    // Made anew, because one remembers what it has found.
    const provider = defaultProvider({
      ignoreCache: true,
      clientConfig: { requestHandler, ...(region !== null && { region }) },
      // Without a profile's name the chain begins at the environment.
      ...(profile !== null && { profile: keysOfEnvironment ? "" : profile }),
    });
    return provider().finally(() => requestHandler.destroy());
  };
  return new RenewedValue({
    clock,
    load: () =>
      found().catch((error: unknown) => {
        throw kitError("the source of the credentials", error);
      }),
    secretsOf: ({ secretAccessKey, sessionToken }) => [secretAccessKey, sessionToken],
    endOf: ({ expiration }) => expiration?.getTime() ?? null,
    loadMs: LOAD_MS,
    late: () => new DriverError("access", `no credentials within ${LOAD_MS} ms; check credential_process`),
  });
}
