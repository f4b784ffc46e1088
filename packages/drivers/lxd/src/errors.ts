import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";
import { LxdConfigError, LxdError, NoAnswer } from "./client.ts";

/**
 * What the server's words mean; the first that fits counts. Statuses say little: LXD answers 500 for a full project and for a profile that is
 * not there, and 400 for an operation that failed for whatever reason (seen on 5.0.2).
 */
const WORDS: readonly (readonly [RegExp, DriverErrorKind])[] = [
  [/^not authorized$|certificate is restricted|permission/i, "access"],
  [/reached maximum|exceeds? .*limit|would exceed|aggregate value/i, "quota"],
  [
    /no space left|disk quota exceeded|not enough (space|memory)|cannot allocate memory|no suitable cluster member/i,
    "capacity",
  ],
  [
    /busy|locked|already exists|timed? ?out|database is|connection refused|unreachable|context deadline/i,
    "transient",
  ],
  [
    /invalid (value|config|devices?|option)|unknown (configuration key|device)|doesn't (exist|match)|not (supported|operational)|has no "limits|alias not found|image not found|project not found|profile not found|forbidden|isn't allowed/i,
    "configuration",
  ],
];

/** Translates all errors of the driver's code into DriverErrors; no other place does so. */
export function mapError(error: unknown, place: string): DriverError {
  // A shared load may already have wrapped the error as `fatal`.
  const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
  const kind = kindOf(own);
  return kind === undefined
    ? asDriverError(error, place)
    : new DriverError(kind, `${place}: ${(own as Error).message}${remedyOf(own)}`, { cause: own });
}

/** Undefined for errors that are not the client's. */
function kindOf(error: unknown): DriverErrorKind | undefined {
  if (error instanceof LxdConfigError) return "access";
  if (error instanceof NoAnswer) return "transient";
  if (!(error instanceof LxdError)) return undefined;
  const { status, said } = error;
  const known = WORDS.find(([words]) => words.test(said));
  if (known !== undefined) return known[1];
  if (status === 401 || status === 403) return "access";
  if (status === 404) return "not-found";
  // An operation that failed for a reason that nobody has seen yet may be passing.
  return "transient";
}

/** What an operator can do, as the end of a sentence. */
function remedyOf(error: unknown): string {
  return error instanceof LxdError && error.status === 403
    ? "; the server has to trust the client's certificate: lxc config trust add"
    : "";
}
