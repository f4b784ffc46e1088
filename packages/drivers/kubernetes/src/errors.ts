import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { KubeConfigError, KubeError, NoAnswer } from "./client/index.ts";

/**
 * Maps errors of the API server to driver errors. No other module does this. Kinds: packages/drivers/kit/src/errors.ts. `place` begins
 * the message.
 */
export function mapError(error: unknown, place: string): DriverError {
  const kind = kindOf(error);
  if (kind === undefined) return asDriverError(error, place);
  return new DriverError(kind, `${place}: ${(error as Error).message}`, { cause: error });
}

/** Undefined for errors that are not the client's: DriverErrors stay as they are, others become fatal. */
function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof KubeConfigError) return "access";
  if (error instanceof NoAnswer) return "transient";
  return error instanceof KubeError ? kindOfAnswer(error) : undefined;
}

/** The kind of an error answer. Words of the message count before the status, because a quota, roles and admission rules all answer 403. */
function kindOfAnswer({ status, said, causes }: KubeError): DriverErrorKind {
  if (/exceeded quota/i.test(said)) return "quota";
  // The namespace of an earlier attempt is still terminating, or its default service account does not exist yet.
  if (causes.includes("NamespaceTerminating") || /serviceaccount .* not found/i.test(said))
    return "transient";
  switch (status) {
    case 404:
    case 410:
      return "not-found";
    // The credential was renewed once without effect.
    case 401:
      return "access";
    // RBAC's own words: 'User "x" cannot create resource "pods" ..'. Any other refusal is an admission rule's, about this object.
    case 403:
      return /cannot \S+ resource|anonymous/i.test(said) ? "access" : "configuration";
    case 400:
    case 422:
      return "configuration";
    default:
      return status >= 500 || [408, 409, 425, 429].includes(status) ? "transient" : "fatal";
  }
}
