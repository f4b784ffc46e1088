import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { LxdConfigError, LxdError, NoAnswer } from "./client.ts";

/**
 * What the server's words mean; the first that fits counts. Statuses say little: LXD answers 500 for a full project and for a profile that is
 * not there, and 400 for an operation that failed for whatever reason (seen on 5.0.2).
 */
const WORDS: readonly (readonly [DriverErrorKind, RegExp])[] = [
  ["access", /^not authorized$|certificate is restricted/i],
  ["quota", /reached maximum|exceeds? .*limit|would exceed|aggregate value/i],
  ["unsupported", /cluster member not found/i],
  ["capacity", /no space left|quota exceeded|not enough (space|memory)|allocate memory|cluster member/i],
  ["transient", /busy|locked|already exists|timed? ?out|database is|connection refused|unreachable/i],
  ["configuration", /^invalid|: invalid|unknown (configuration key|device)|doesn't (exist|match)/i],
  ["configuration", /not (supported|operational|allowed)|forbidden|failed to fetch|has no "limits/i],
  ["configuration", /(alias|image|project|profile) not found/i],
];
const STATUS: Readonly<Record<number, DriverErrorKind>> = { 401: "access", 403: "access", 404: "not-found" };

/** Translates all errors of the driver's code into DriverErrors; no other place does so. */
export function mapError(error: unknown, place: string): DriverError {
  // A shared load may already have wrapped the error as `fatal`.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const kind = kindOf(own);
  if (kind === undefined) return asDriverError(error, place);
  const remedy = own instanceof LxdError && kind === "access" ? "; see lxc config trust add" : "";
  return new DriverError(kind, `${place}: ${(own as Error).message}${remedy}`, { cause: own });
}

/** Undefined for errors that are not the client's. An operation that failed for a reason that nobody has seen yet may be passing. */
function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof LxdConfigError) return "access";
  if (error instanceof NoAnswer) return "transient";
  if (!(error instanceof LxdError)) return undefined;
  return WORDS.find(([, words]) => words.test(error.said))?.[0] ?? STATUS[error.status] ?? "transient";
}
