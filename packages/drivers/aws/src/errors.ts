import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { type AwsFault, faultOf, isThrottled } from "./client/index.ts";

/** Error codes of the EC2, EBS and S3 API references whose kind does not follow from their name or HTTP status. */
const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  // The account's quota is used up.
  InstanceLimitExceeded: "quota",
  VcpuLimitExceeded: "quota",
  HostLimitExceeded: "quota",
  MaxSpotInstanceCountExceeded: "quota",
  MaxSpotFleetRequestCountExceeded: "quota",
  MaxIOPSLimitExceeded: "quota",
  VolumeLimitExceeded: "quota",
  AddressLimitExceeded: "quota",
  NetworkInterfaceLimitExceeded: "quota",
  ResourceCountLimitExceeded: "quota",
  SnapshotLimitExceeded: "quota",
  ServiceQuotaExceededException: "quota",
  // AWS has no capacity in that zone.
  InsufficientInstanceCapacity: "capacity",
  InsufficientHostCapacity: "capacity",
  InsufficientReservedInstanceCapacity: "capacity",
  InsufficientVolumeCapacity: "capacity",
  InsufficientCapacity: "capacity",
  InsufficientCapacityOnHost: "capacity",
  InsufficientFreeAddressesInSubnet: "capacity",
  UnfulfillableCapacity: "capacity",
  SpotMaxPriceTooLow: "capacity",
  // The zone never has the instance type; another zone may.
  Unsupported: "unsupported",
  InsufficientAddressCapacity: "capacity",
  // Caused by another operation in progress; soon over.
  IncorrectInstanceState: "transient",
  IncorrectState: "transient",
  IdempotentParameterMismatch: "transient",
  InvalidStateTransition: "transient",
  "InvalidSnapshot.InUse": "transient",
  VolumeInUse: "transient",
  DependencyViolation: "transient",
  // Something else answered in the place of AWS.
  StrangeAnswer: "transient",
  // The credentials are wrong or may not do this.
  AuthFailure: "access",
  UnauthorizedOperation: "access",
  AccessDenied: "access",
  AccessDeniedException: "access",
  InvalidAccessKeyId: "access",
  InvalidClientTokenId: "access",
  UnrecognizedClientException: "access",
  SignatureDoesNotMatch: "access",
  ExpiredToken: "access",
  ExpiredTokenException: "access",
  RequestExpired: "access",
  // Terms of an image that nobody has accepted yet.
  OptInRequired: "configuration",
  CredentialsProviderError: "access",
  TokenProviderError: "access",
  ProviderError: "access",
  NoSuchKey: "not-found",
  NotFound: "not-found",
};

/**
 * Errors about resources that were listed before. Their absence is an expected answer (not-found). Any other resource that is not found is
 * named in the configuration file, which is then wrong.
 */
const SEEN =
  /^Invalid(InstanceID|InstanceId|Volume|Snapshot|HostID|HostId|NetworkInterfaceID|LaunchTemplateName|LaunchTemplateId|ConversionTaskId)\./;

/** Codes of wrong or expired credentials. PERMISSION: the credential is valid, but its policy lacks the action. */
const CREDENTIAL =
  /^(AuthFailure|InvalidAccessKeyId|InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|ExpiredToken|RequestExpired|CredentialsProviderError|TokenProviderError)/;
const PERMISSION = /^(UnauthorizedOperation|AccessDenied)/;

/** Maps AWS errors to driver errors. No other module does this. */
export function mapError(error: unknown, place: string): DriverError {
  // A shared value wraps the error of its load as a fatal one. The cause is the AWS error.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const fault = own instanceof DriverError ? null : faultOf(own);
  if (fault === null) return asDriverError(error, place);
  return new DriverError(kindOfFault(fault), `${place}: ${fault.message} (${fault.code})${remedyOf(fault)}`, {
    cause: own,
  });
}

/**
 * The kind of a fault: by its code, then by the form of the code, then by the HTTP status. Also for errors in a fleet's answer,
 * which have a code and no HTTP status.
 */
export function kindOfFault(fault: AwsFault): DriverErrorKind {
  const { code, status, message } = fault;
  // "Not authorized for images: [ami-..]": the label's image, while everything else of the provider works.
  if (code === "AuthFailure" && /not authorized for/i.test(message)) return "configuration";
  const known = KINDS[code];
  if (known !== undefined) return known;
  if (isThrottled(fault)) return "transient";
  if (SEEN.test(code)) return "not-found";
  if (/^(Invalid|Missing|Malformed|NoSuch|Unknown|Validation)|NotFound$/.test(code)) return "configuration";
  // Without an answer, and with an answer of a service in trouble, the same call may succeed later.
  return status === undefined || status >= 500 || status === 408 || status === 429 ? "transient" : "fatal";
}

/** What an operator can do about credentials and rights, as the end of a sentence; empty for other faults. */
function remedyOf({ code }: AwsFault): string {
  if (CREDENTIAL.test(code)) return "; check the credentials of the provider's profile";
  return PERMISSION.test(code)
    ? '; compare the policy of the credential with that of "nodeyard docs connect-aws"'
    : "";
}
