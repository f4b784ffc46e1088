import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { ApiError, LoginError, NoAnswer, OddAnswer, type OperationFault } from "./client/errors.ts";

/** What an answer or an operation says, by its word: the first that fits counts. */
const WORDS: readonly (readonly [RegExp, DriverErrorKind])[] = [
  [/rateLimitExceeded|RATE_LIMIT_EXCEEDED|CONCURRENT_OPERATIONS/i, "transient"],
  [
    /RESOURCE_POOL_EXHAUSTED|STOCKOUT|INSUFFICIENT_CAPACITY|IP_SPACE_EXHAUSTED|resourcePoolExhausted/,
    "capacity",
  ],
  [/QUOTA_EXCEEDED|quotaExceeded|limitExceeded/, "quota"],
  [/UNSUPPORTED_OPERATION|MACHINE_TYPE_NOT_(AVAILABLE|FOUND)/, "unsupported"],
  [
    /NOT_READY|resourceNotReady|IN_USE|resourceInUse|CONDITION_NOT_MET|conditionNotMet|alreadyExists/,
    "transient",
  ],
  [/PERMISSION|FORBIDDEN|forbidden|accessNotConfigured|insufficientPermissions|authError/i, "access"],
  [/RESOURCE_NOT_FOUND|INVALID|invalid|badRequest|required/, "configuration"],
];

/** Translates all errors of the driver's code into DriverErrors; no other place does so. */
export function mapError(error: unknown, place: string): DriverError {
  // A shared load may already have wrapped the error as `fatal`.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const kind = kindOf(own);
  if (kind === undefined) return asDriverError(error, place);
  const remedy = kind === "access" ? `; ${REMEDY}` : "";
  return new DriverError(kind, `${place}: ${(own as Error).message}${remedy}`, { cause: own });
}

const REMEDY = 'compare the credentials and roles with "nodeyard docs connect-google-cloud"';

/** Undefined for errors that are not the client's. */
function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof LoginError) return "access";
  if (error instanceof NoAnswer || error instanceof OddAnswer) return "transient";
  if (!(error instanceof ApiError)) return undefined;
  const { status, reason, isRate } = error;
  if (isRate) return "transient";
  if (status === 404 || status === 410) return "not-found";
  if (status === 401) return "access";
  const [, kind] = WORDS.find(([word]) => word.test(reason)) ?? [];
  if (kind !== undefined) return kind;
  if (status === 403) return "access";
  return status >= 400 && status < 500 && ![408, 409, 412].includes(status) ? "configuration" : "transient";
}

/** The error of an operation that did not make its machine. A stock-out names the zones that have room. */
export function operationError(
  { code, message, errorDetails = [] }: OperationFault,
  place: string,
): DriverError {
  const [, kind = "transient"] = WORDS.find(([word]) => word.test(code)) ?? [];
  const zones = errorDetails.flatMap(({ errorInfo }) => errorInfo?.metadatas?.zonesAvailable || []);
  const room = zones.length === 0 ? "" : `; zones with room: ${zones.join(", ")}`;
  // The operation began, so it is no credential that lacks a right.
  return new DriverError(kind === "access" ? "configuration" : kind, `${place}: ${message} (${code})${room}`);
}
