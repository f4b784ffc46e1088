import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { ArmError, LoginError, NoAnswer, OddAnswer } from "./client/index.ts";

/** Azure's codes whose kind does not follow from the HTTP status. */
const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  QuotaExceeded: "quota",
  PublicIPCountLimitReached: "quota",
  PublicIPAddressCountLimitReached: "quota",
  IPv4StandardSkuPublicIpCountLimitReached: "quota",
  AllocationFailed: "capacity",
  ZonalAllocationFailed: "capacity",
  OverconstrainedAllocationRequest: "capacity",
  OverconstrainedZonalAllocationRequest: "capacity",
  SkuNotAvailable: "capacity",
  SpotPriceGreaterThanProvidedMaxPrice: "capacity",
  SubnetIsFull: "capacity",
  NotAvailableForSubscription: "unsupported",
  AvailabilityZoneNotSupported: "unsupported",
  // The machine was made, and its agent did not report: mostly a fault of the image.
  OSProvisioningTimedOut: "timeout",
  VMStartTimedOut: "timeout",
  InvalidAuthenticationToken: "access",
  AuthenticationFailed: "access",
  AuthorizationFailed: "access",
  LinkedAuthorizationFailed: "access",
  LinkedAccessCheckFailed: "access",
  MissingSubscriptionRegistration: "access",
  SubscriptionNotFound: "access",
  InvalidSubscriptionId: "access",
  ReadOnlyDisabledSubscription: "access",
  ScopeLocked: "access",
  RequestDisallowedByPolicy: "configuration",
  ResourceGroupNotFound: "configuration",
  InvalidResourceReference: "configuration",
  ImageNotFound: "configuration",
  PlatformImageNotFound: "configuration",
  GalleryImageNotFound: "configuration",
  ResourcePurchaseValidationFailed: "configuration",
  PropertyChangeNotAllowed: "transient",
  RetryableError: "transient",
};

/** `OperationNotAllowed` stands for a quota, for a resource that another operation changes, and for what is never allowed. */
const QUOTA = /quota|exceed\w* .*(limit|maximum)/i;

/** Translates all errors of the driver's code into DriverErrors; no other place does so. */
export function mapError(error: unknown, place: string): DriverError {
  // A shared load may already have wrapped the error as `fatal`.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const kind = kindOf(own);
  if (kind === undefined) return asDriverError(error, place);
  return new DriverError(kind, `${place}: ${(own as Error).message}${remedyOf(own, kind)}`, { cause: own });
}

function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof LoginError) return "access";
  if (error instanceof NoAnswer || error instanceof OddAnswer) return "transient";
  return error instanceof ArmError ? kindOfFault(error.fault, error.message, error.status) : undefined;
}

/** `status` 0: of a machine that Azure made and gave up, or of an operation, which was accepted. */
export function kindOfFault(code: string, message: string, status: number): DriverErrorKind {
  const known = KINDS[code];
  if (known !== undefined) return known;
  if (code === "OperationNotAllowed" && QUOTA.test(message)) return "quota";
  switch (status) {
    case 400:
      return "configuration";
    case 401:
    case 403:
      return "access";
    case 404:
      return "not-found";
    default:
      return status >= 402 && status < 500 && ![408, 409, 412, 423, 425, 429].includes(status)
        ? "fatal"
        : "transient";
  }
}

/** What an operator can do, as the end of a sentence; empty when the message says it already. */
function remedyOf(error: unknown, kind: DriverErrorKind): string {
  if (kind !== "access") return "";
  return error instanceof ArmError && error.status === 403
    ? '; compare the role of the credential with that of "nodeyard docs connect-azure"'
    : "; check the credentials of auth-path, or of the environment";
}
