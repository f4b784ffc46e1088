import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { type AwsFault, faultOf, isThrottled } from "./client/index.ts";

/** Codes of the EC2, EBS and S3 API references whose kind their name or status does not tell. */
const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  // Our share is used up.
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
  // There is none left in that place.
  InsufficientInstanceCapacity: "capacity",
  InsufficientHostCapacity: "capacity",
  InsufficientReservedInstanceCapacity: "capacity",
  InsufficientVolumeCapacity: "capacity",
  InsufficientCapacity: "capacity",
  InsufficientCapacityOnHost: "capacity",
  InsufficientFreeAddressesInSubnet: "capacity",
  UnfulfillableCapacity: "capacity",
  SpotMaxPriceTooLow: "capacity",
  // The zone has not that type; another may.
  Unsupported: "capacity",
  InsufficientAddressCapacity: "capacity",
  // Of somebody else's making, and over soon.
  IncorrectInstanceState: "transient",
  IncorrectState: "transient",
  IdempotentParameterMismatch: "transient",
  InvalidStateTransition: "transient",
  "InvalidSnapshot.InUse": "transient",
  VolumeInUse: "transient",
  DependencyViolation: "transient",
  // The credential.
  AuthFailure: "configuration",
  UnauthorizedOperation: "configuration",
  AccessDenied: "configuration",
  AccessDeniedException: "configuration",
  InvalidAccessKeyId: "configuration",
  InvalidClientTokenId: "configuration",
  UnrecognizedClientException: "configuration",
  SignatureDoesNotMatch: "configuration",
  ExpiredToken: "configuration",
  ExpiredTokenException: "configuration",
  RequestExpired: "configuration",
  OptInRequired: "configuration",
  CredentialsProviderError: "configuration",
  TokenProviderError: "configuration",
  NoSuchKey: "not-found",
  NotFound: "not-found",
};

/** Things that a call names because we saw them: that they are gone is an answer. Everything else that is not found is in the file. */
const SEEN =
  /^Invalid(InstanceID|InstanceId|Volume|Snapshot|HostID|HostId|NetworkInterfaceID|LaunchTemplateName|LaunchTemplateId|ConversionTaskId)\./;

const CREDENTIAL =
  /^(AuthFailure|InvalidAccessKeyId|InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|ExpiredToken|RequestExpired|CredentialsProviderError|TokenProviderError)/;
const PERMISSION = /^(UnauthorizedOperation|AccessDenied)/;

/** The one place where AWS's errors become the driver's. */
export function mapError(error: unknown, place: string): DriverError {
  // What a shared load rejected with has been wrapped on its way.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const fault = own instanceof DriverError ? null : faultOf(own);
  if (fault === null) return asDriverError(error, place);
  return new DriverError(kindOfFault(fault), `${place}: ${fault.message} (${fault.code})${remedyOf(fault)}`, {
    cause: own,
  });
}

/** Also of what a fleet says in its answer, which is a code without a status. */
export function kindOfFault(fault: AwsFault): DriverErrorKind {
  const { code, status } = fault;
  const known = KINDS[code];
  if (known !== undefined) return known;
  if (isThrottled(fault)) return "transient";
  if (SEEN.test(code)) return "not-found";
  if (/^(Invalid|Missing|Malformed|NoSuch|Unknown|Validation)|NotFound$/.test(code)) return "configuration";
  // Without an answer, or with one of a service in trouble, the same call may work a moment later.
  return status === undefined || status >= 500 || status === 408 || status === 429 ? "transient" : "fatal";
}

function remedyOf({ code }: AwsFault): string {
  if (CREDENTIAL.test(code)) return "; check the credentials of the provider's profile";
  return PERMISSION.test(code)
    ? "; compare the policy of the credential with docs/how-to/connect-aws.md"
    : "";
}
