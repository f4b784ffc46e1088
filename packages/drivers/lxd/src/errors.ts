import { errorMap } from "@nodeyard/driver";

const remedy = "see lxc config trust add";

/**
 * What the server's words mean. Statuses say little: LXD answers 500 for a full project and for a profile that is not there, and 400 for an
 * operation that failed for whatever reason (seen on 5.0.2).
 */
export const mapError = errorMap([
  { kind: "access", text: /^not authorized$|certificate is restricted/i, remedy },
  { kind: "quota", text: /reached maximum|exceeds? .*limit|would exceed|aggregate value/i },
  { kind: "unsupported", text: /cluster member not found/i },
  {
    kind: "capacity",
    text: /no space left|quota exceeded|not enough (space|memory)|allocate memory|cluster member|target=.*unable to connect/i,
  },
  {
    kind: "transient",
    text: /busy|locked|already exists|timed? ?out|database is|connection refused|unreachable/i,
  },
  {
    kind: "configuration",
    text: /^invalid|: invalid|unknown (configuration key|device)|doesn't (exist|match)/i,
  },
  {
    kind: "configuration",
    text: /not (supported|operational|allowed)|forbidden|failed to fetch|has no "limits/i,
  },
  { kind: "configuration", text: /(alias|image|project|profile) not found/i },
  { kind: "access", statuses: [401, 403], remedy },
  { kind: "not-found", statuses: [404] },
  // An operation that failed for a reason that nobody has seen yet may be passing.
  { kind: "transient" },
]);
