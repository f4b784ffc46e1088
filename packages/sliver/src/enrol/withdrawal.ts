import { EnrolError } from "./errors.ts";
import { CONTROL_USER, LAYOUT } from "./layout.ts";
import { REMOVED_LAST } from "./parts.ts";

/** What there is of an enrolment, whole or not. */
export interface Enrolment {
  readonly running: boolean;
  /** Of `REMOVED` and `REMOVED_LAST`, what is there. */
  readonly paths: readonly string[];
  readonly user: boolean;
  /** Why the daemon's file does not say how slivers are ended; undefined: it does. */
  readonly lost: string | undefined;
  /** What slivers have on the machine, as far as it is found without that file. */
  readonly slivers: readonly string[];
  /** True when sshd's configuration has the control account. */
  readonly sshd: boolean;
}

export interface Withdrawal {
  /** One line each for the operator. */
  readonly changes: readonly string[];
  readonly dismantle: boolean;
}

/** Things of slivers that a refusal names. */
const NAMED = 4;

/** What is to be done so that nothing of an enrolment is left. Throws EnrolError where that would leave slivers without what can end them. */
export function planWithdrawal(found: Enrolment): Withdrawal {
  const { lost, slivers, running, paths, user, sshd } = found;
  if (lost !== undefined && slivers.length > 0) throw refusal(lost, slivers);
  const dismantle = lost === undefined;
  const removed = (afterUser: boolean) =>
    paths.filter((path) => REMOVED_LAST.includes(path) === afterUser).map((path) => `remove ${path}`);
  return {
    changes: [
      ...(running ? ["stop sliverd"] : []),
      ...(dismantle ? ["end every sliver, and remove their files, rules and groups"] : []),
      ...removed(false),
      ...(sshd ? ["have sshd read its configuration again"] : []),
      ...(user ? [`remove the user ${CONTROL_USER}`] : []),
      ...removed(true),
    ],
    dismantle,
  };
}

function refusal(lost: string, slivers: readonly string[]): EnrolError {
  const more = slivers.length - NAMED;
  const named = slivers.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return new EnrolError(
    `${lost}, and only that file says how slivers are ended; of them there is ${named}; nothing was removed: restore ${LAYOUT.config}, or remove it and run nodeyard sliverd install with the --node and --sliverd-config of before, then uninstall`,
  );
}
