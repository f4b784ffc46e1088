import { CONTROL_USER } from "@nodeyard/sliver-protocol";
import { EnrolError } from "../errors.ts";
import { LAYOUT, type Part, REMOVED_LAST } from "./parts.ts";

/** The present state of the machine's parts. */
export interface Found {
  /** Text and mode of existing files, by path. */
  readonly files: ReadonlyMap<string, { readonly text: string; readonly mode: number }>;
  readonly links: ReadonlyMap<string, string>;
  readonly folders: ReadonlyMap<string, number>;
  readonly users: ReadonlySet<string>;
  readonly missingPackages: readonly string[];
  readonly running: boolean;
  /** True when an enrolment began to change the daemon's files and was interrupted before it restarted the daemon. */
  readonly due: boolean;
  /** The configuration that sshd last loaded. */
  readonly loaded: string | undefined;
}

export interface Change {
  readonly part: Part;
  /** Description for the operator, one line. */
  readonly what: string;
}

/** The plan of an enrolment. */
export interface EnrolPlan {
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  /** Missing packages whose installation was not requested. */
  readonly missing: readonly string[];
  /** True when sshd must reload its configuration. */
  readonly sshd: boolean;
  /** The action on the daemon's service. */
  readonly service: "start" | "restart" | "none";
}

/** The changes that make `parts` exist. After them the next plan is empty. */
export function planEnrolment(
  parts: readonly Part[],
  found: Found,
  { installPackages, image }: { readonly installPackages: boolean; readonly image: boolean },
): EnrolPlan {
  const missing = found.missingPackages;
  const packages: Part[] =
    installPackages && missing.length > 0 ? [{ kind: "packages", names: [...missing] }] : [];
  const changes = [...packages, ...parts].flatMap((part): Change[] => {
    const what = differenceOf(part, found);
    return what === undefined ? [] : [{ part, what }];
  });
  const touched = changes.some(({ part }) => restarts(part));
  return {
    changes,
    missing: installPackages ? [] : missing,
    sshd:
      !image &&
      parts.some((part) => part.kind === "file" && part.path === LAYOUT.sshd && part.text !== found.loaded),
    service: image ? "none" : !found.running ? "start" : touched || found.due ? "restart" : "none",
  };
}

/** What differs; undefined when nothing does. */
function differenceOf(part: Part, found: Found): string | undefined {
  switch (part.kind) {
    case "packages":
      return `install the packages ${part.names.join(", ")}`;
    case "programs":
      return found.folders.has(part.path) ? undefined : `put the programs into ${part.path}`;
    case "user":
      return found.users.has(part.name)
        ? undefined
        : `create the user ${part.name}, without a password or a home`;
    case "folder": {
      const mode = found.folders.get(part.path);
      if (mode === part.mode) return undefined;
      return mode === undefined
        ? `create the folder ${part.path}`
        : `set the mode of ${part.path} to ${octal(part.mode)}`;
    }
    case "file": {
      const file = found.files.get(part.path);
      if (file?.text === part.text && file.mode === part.mode) return undefined;
      return `${file === undefined ? "write" : "replace"} ${part.path}`;
    }
    case "link": {
      const to = found.links.get(part.path);
      if (to === part.to) return undefined;
      return `${to === undefined ? "link" : "point"} ${part.path} to ${part.to}`;
    }
  }
}

function restarts(part: Part): boolean {
  if (part.kind === "link") return part.path === LAYOUT.current;
  return part.kind === "file" && (part.path === LAYOUT.config || part.path === LAYOUT.unit);
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/** The present parts of an enrolment, complete or not. */
export interface Enrolment {
  readonly running: boolean;
  /** Existing paths of `REMOVED` and `REMOVED_LAST`. */
  readonly paths: readonly string[];
  readonly user: boolean;
  /** Why the daemon's file cannot be used to end slivers; undefined when it can. */
  readonly lost: string | undefined;
  /** Traces of slivers that are found without that file. */
  readonly slivers: readonly string[];
  /** True when sshd's configuration contains the control account. */
  readonly sshd: boolean;
}

/** The plan of a removal, in order. */
export interface Withdrawal {
  /** Descriptions for the operator, one line each. */
  readonly changes: readonly string[];
  readonly dismantle: boolean;
}

/** Most traces of slivers that an error message names. */
const NAMED = 4;

/** Plans the removal of an enrolment. Throws EnrolError when it would leave slivers without the file that is needed to end them. */
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
