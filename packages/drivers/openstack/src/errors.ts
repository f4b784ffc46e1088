import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import type { Server } from "./api/compute.ts";
import { ApiError, CloudConfigError, NoAnswer, OddAnswer } from "./client/index.ts";

/** Translates all errors of the driver's code into DriverErrors; no other place does so. */
export function mapError(error: unknown, place: string): DriverError {
  // A shared load may already have wrapped the error as `fatal`.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const kind = kindOf(own);
  if (kind === undefined) return asDriverError(error, place);
  const remedy = own instanceof ApiError ? remedyOf(own, kind) : "";
  return new DriverError(kind, `${place}: ${(own as Error).message}${remedy}`, { cause: own });
}

/** Undefined for errors that are not the client's. */
function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof CloudConfigError) return "access";
  if (error instanceof NoAnswer || error instanceof OddAnswer) return "transient";
  return error instanceof ApiError ? kindOfAnswer(error) : undefined;
}

/** neutron names the types of its errors (neutron_lib.exceptions); the other services have only a status. */
const TYPES: Readonly<Record<string, DriverErrorKind>> = {
  OverQuota: "quota",
  IpAddressGenerationFailure: "capacity",
  ExternalIpAddressExhausted: "capacity",
  NoNetworkAvailable: "capacity",
  MacAddressGenerationFailure: "capacity",
  PolicyNotAuthorized: "access",
};

/** The text distinguishes a limit from a missing permission when the status is the same. */
const QUOTA = /quota|number of ports exceeded|exceeded.*(limit|maximum)/i;

/** The kind of a refused request: neutron's type first, then the status. Text counts only where a status has two meanings. */
function kindOfAnswer({ status, fault }: ApiError): DriverErrorKind {
  const byType = fault.type === null ? undefined : TYPES[fault.type];
  if (byType !== undefined) return byType;
  switch (status) {
    case 404:
    case 410:
      return "not-found";
    case 400:
      return "configuration";
    // The session logged in again once, and the new token was refused as well.
    case 401:
      return "access";
    case 403:
    // nova answers 403 and cinder 413 for a quota. A 413 without that word is a rate limit of older services.
    case 413:
      return QUOTA.test(fault.message) ? "quota" : status === 413 ? "transient" : "access";
    default:
      return status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status) ? "fatal" : "transient";
  }
}

/** What an operator can do, as the end of a sentence; empty when the message says it already. */
function remedyOf({ status }: ApiError, kind: DriverErrorKind): string {
  if (status === 401) return "; check the credential in clouds.yaml and secure.yaml";
  return status === 403 && kind === "access"
    ? "; the credential lacks a permission; ask the operator of the cloud"
    : "";
}

/**
 * The error for a server in state ERROR. nova's `fault.code` is the HTTP status of the exception; 500 is not specific. Never of
 * kind "configuration", because nova had accepted the request.
 */
export function faultError(server: Server, place: string): DriverError {
  const { code = 500, message = "no fault is given" } = server.fault ?? {};
  return new DriverError(
    faultKind(code, message),
    `${place}: server ${server.id} went to ${server.status}: ${message.trim() || "no reason given"} (fault ${code})`,
  );
}

/** "quota" and "capacity" make the launcher look elsewhere or wait; "transient" makes it try again. */
function faultKind(code: number, message: string): DriverErrorKind {
  if (code === 413 || /quota/i.test(message)) return "quota";
  if (/no valid host|exhausted all hosts|not enough|insufficient/i.test(message)) return "capacity";
  return "transient";
}
