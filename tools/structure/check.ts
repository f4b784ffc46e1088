import { checkBoundaries } from "./checks/boundaries.ts";
import { checkCitations } from "./checks/citations.ts";
import { checkCommands } from "./checks/commands.ts";
import { checkCycles } from "./checks/cycles.ts";
import { checkDependencies } from "./checks/dependencies.ts";
import { checkDocs } from "./checks/docs.ts";
import { checkDrivers } from "./checks/drivers.ts";
import { checkEffects } from "./checks/effects.ts";
import { checkErrorCodes } from "./checks/error-codes.ts";
import { checkLimits } from "./checks/limits.ts";
import { checkLinks } from "./checks/links.ts";
import { checkShape } from "./checks/shape.ts";
import { checkSnippets } from "./checks/snippets.ts";
import type { Finding } from "./findings.ts";
import type { Workspace } from "./workspace.ts";

const CHECKS: readonly ((workspace: Workspace) => Finding[])[] = [
  checkBoundaries,
  checkDependencies,
  checkCycles,
  checkEffects,
  checkShape,
  checkLimits,
  checkDocs,
  checkDrivers,
  checkErrorCodes,
  checkLinks,
  checkCitations,
  checkSnippets,
  checkCommands,
];

/** All findings of all checks. */
export function checkWorkspace(workspace: Workspace): Finding[] {
  return CHECKS.flatMap((check) => check(workspace));
}
