import { type DriverErrorKind, errorMap, type FaultRow, judged } from "@nodeyard/driver";
import { THROTTLED } from "./client/errors.ts";

/** Error codes of the EC2, EBS and S3 API references. The form of a code counts where it has no row of its own. */
const TABLE: readonly FaultRow[] = [
  // "Not authorized for images: [ami-..]": the label's image, while everything else of the provider works.
  { kind: "configuration", codes: ["AuthFailure"], text: /not authorized for/i },
  {
    kind: "quota",
    codes:
      /^((Instance|Vcpu|Host|Volume|Address|NetworkInterface|Snapshot|MaxIOPS)LimitExceeded|MaxSpot(Instance|FleetRequest)CountExceeded|ResourceCountLimitExceeded|ServiceQuotaExceededException)$/,
  },
  {
    kind: "capacity",
    codes:
      /^(Insufficient((Instance|Host|ReservedInstance|Volume|Address)?Capacity|CapacityOnHost|FreeAddressesInSubnet)|UnfulfillableCapacity|SpotMaxPriceTooLow)$/,
  },
  // The zone never has the instance type; another zone may. Or the instance is of a kind that cannot be stopped.
  { kind: "unsupported", codes: /^Unsupported(Operation)?$/ },
  // Caused by another operation in progress; soon over.
  {
    kind: "transient",
    codes:
      /^(IncorrectInstanceState|IncorrectState|IdempotentParameterMismatch|InvalidStateTransition|InvalidSnapshot\.InUse|VolumeInUse|DependencyViolation)$/,
  },
  {
    kind: "access",
    codes:
      /^(AuthFailure|InvalidAccessKeyId|InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|ExpiredToken(Exception)?|RequestExpired)$/,
    remedy: "check the credentials of the provider's profile",
  },
  // The credentials are valid, but their policy lacks the action.
  {
    kind: "access",
    codes: /^(UnauthorizedOperation|AccessDenied(Exception)?)$/,
    remedy: 'compare the policy of the credential with that of "nodeyard docs connect-aws"',
  },
  // Terms of an image that nobody has accepted yet.
  { kind: "configuration", codes: ["OptInRequired"] },
  { kind: "not-found", codes: ["NoSuchKey", "NotFound"] },
  { kind: "transient", codes: [THROTTLED] },
  // Resources that were listed before: their absence is an expected answer. Any other resource that is not found is named in the
  // configuration file, which is then wrong.
  {
    kind: "not-found",
    codes:
      /^Invalid(InstanceI[Dd]|Volume|Snapshot|HostI[Dd]|NetworkInterfaceID|LaunchTemplateName|LaunchTemplateId|ConversionTaskId)\./,
  },
  { kind: "configuration", codes: /^(Invalid|Missing|Malformed|NoSuch|Unknown|Validation)|NotFound$/ },
  // A code that nobody knows says more than its status. 301, 307: S3 names the region of a bucket.
  { kind: "fatal", statuses: [301, 307, 400, 401, 403, 404, 409, 412] },
];

/** The kind of an error without a call: of an instance that ended, or of one type of a fleet. */
export function kindOf(code: string, text: string, status: number): DriverErrorKind {
  return judged(TABLE, { codes: [code], status, text }).kind;
}

export const mapError = errorMap(TABLE);
