import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { KubeConfigError, KubeError, NoAnswer } from "./client/index.ts";

/** Maps errors of the API server to driver errors. No other module does this. */
export function mapError(error: unknown, place: string): DriverError {
  const kind = kindOf(error);
  if (kind === undefined) return asDriverError(error, place);
  return new DriverError(kind, `${place}: ${(error as Error).message}`, { cause: error });
}

function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof KubeConfigError) return "configuration";
  if (error instanceof NoAnswer) return "transient";
  return error instanceof KubeError ? kindOfAnswer(error) : undefined;
}

function kindOfAnswer({ status, said, causes }: KubeError): DriverErrorKind {
  if (/exceeded quota/i.test(said)) return "quota";
  // The namespace of an earlier attempt is still terminating, or its default service account does not exist yet.
  if (causes.includes("NamespaceTerminating") || /serviceaccount .* not found/i.test(said))
    return "transient";
  switch (status) {
    case 404:
    case 410:
      return "not-found";
    case 400:
    case 403:
    case 422:
      return "configuration";
    default:
      return status >= 500 || [401, 408, 409, 425, 429].includes(status) ? "transient" : "fatal";
  }
}
