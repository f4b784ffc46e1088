import {
  DriverError,
  errorMap,
  type FaultRow,
  failureBy,
  type HttpAnswer,
  jsonIn,
  orderFault,
  type SaidFault,
  wasRefused,
  xmlFault,
} from "@nodeyard/driver";

/** Too many calls in this minute, or too many operations at once. */
const RATE = /rateLimitExceeded|RATE_LIMIT_EXCEEDED|CONCURRENT_OPERATIONS/i;
export const REMEDY = 'compare the credentials and roles with "nodeyard docs connect-google-cloud"';

/** What an answer or an operation says. */
const ERRORS: readonly FaultRow[] = [
  { kind: "transient", codes: [RATE] },
  // The whole project or region, or the bucket: no label is at fault.
  {
    kind: "access",
    statuses: [404],
    text: /'projects\/[^/']+(\/regions\/[^/']+)?' was not found|bucket does not exist/,
    remedy: "compare project, region and bucket of the provider with Google's",
  },
  { kind: "configuration", statuses: [404], text: /'projects\/[^/']+\/zones\/[^/']+' was not found/ },
  { kind: "not-found", statuses: [404], codes: ["notFound"] },
  // Not of the API: of a proxy, or of an upload that Google has ended.
  { kind: "transient", statuses: [404, 410, 412] },
  { kind: "access", statuses: [401], remedy: REMEDY },
  {
    kind: "capacity",
    codes: /RESOURCE_POOL_EXHAUSTED|STOCKOUT|INSUFFICIENT_CAPACITY|IP_SPACE_EXHAUSTED|resourcePoolExhausted/,
  },
  { kind: "quota", codes: /QUOTA_EXCEEDED|quotaExceeded|limitExceeded/ },
  { kind: "unsupported", codes: /UNSUPPORTED_OPERATION|MACHINE_TYPE_NOT_(AVAILABLE|FOUND)/ },
  {
    kind: "transient",
    codes: /NOT_READY|resourceNotReady|IN_USE|resourceInUse|CONDITION_NOT_MET|conditionNotMet|alreadyExists/,
  },
  {
    kind: "access",
    codes: /PERMISSION|FORBIDDEN|forbidden|accessNotConfigured|insufficientPermissions|authError/i,
    remedy: REMEDY,
  },
  { kind: "configuration", codes: /RESOURCE_NOT_FOUND|INVALID|invalid|badRequest|required/ },
  { kind: "access", statuses: [403], remedy: REMEDY },
];

/** Makes DriverErrors of all errors of the driver's code; no other place does so. */
export const mapError = errorMap(ERRORS);

/** The error of a call that makes something. */
export const ofOrder = (error: unknown) => orderFault(error, mapError);

/** The words of an answer (`error.errors[].reason`, in newer parts of the API of its details), for operators too. Cloud Storage has XML. */
export function faultOf({ text }: HttpAnswer): SaidFault {
  const xml = xmlFault(text);
  if (xml !== undefined) return xml;
  const { error }: { error?: { message?: unknown; errors?: unknown; details?: unknown } } = jsonIn(text);
  const words = [error?.errors, error?.details].flatMap((list) => (Array.isArray(list) ? list : []));
  const codes = words.flatMap((word) => (typeof word?.reason === "string" ? [word.reason] : []));
  const word = codes.length === 0 ? "" : ` (${codes.join(", ")})`;
  return { codes, ...(typeof error?.message === "string" && { text: `${error.message}${word}` }) };
}

/** Whether Google did nothing, as there were too many calls. */
export function isRate(error: unknown): boolean {
  return wasRefused(error, 429, RATE);
}

/**
 * The answer; undefined: Google says that this is not there. `name`: how it names this. A proxy says so of anything, and Google of a whole
 * project, zone or bucket, in which a machine may run all the same.
 */
export async function unlessMissing<T>(answer: Promise<T>, name: string): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (wasRefused(error, 404) && error.codes.includes("notFound") && error.text.includes(name))
      return undefined;
    throw error;
  }
}

/** The error of an operation that has ended: code and message of the first, and the zones that a stock-out names. */
export interface OperationFault {
  readonly code: string;
  readonly message: string;
  readonly errorDetails?: readonly {
    readonly errorInfo?: { readonly metadatas?: Readonly<Record<string, string>> };
  }[];
}

/** The error of an operation that did not make its machine. A stock-out names the zones that have room. */
export function operationError(
  { code, message, errorDetails = [] }: OperationFault,
  place: string,
): DriverError {
  const zones = errorDetails.flatMap(({ errorInfo }) => errorInfo?.metadatas?.zonesAvailable || []);
  const zonesWithRoom = zones.flatMap((names) => names.split(",").map((name) => name.trim()));
  const room = zones.length === 0 ? "" : `; zones with room: ${zones.join(", ")}`;
  const { kind, message: text } = failureBy(ERRORS, place, { code, message });
  // The operation began, so it is no credential that lacks a right.
  return new DriverError(kind === "access" ? "configuration" : kind, `${text}${room}`, { zonesWithRoom });
}
