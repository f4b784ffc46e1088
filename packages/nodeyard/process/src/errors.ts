import { type Finding, formatFinding } from "@nodeyard/config";
import { NodeyardError } from "@nodeyard/runtime";

/** A process cannot be put together or reached as it was asked for. The message says what to do; nothing was changed. */
export class ProcessError extends NodeyardError {}

/** A configuration with errors. `findings` has all of them; the message is the first. */
export class ConfigRefused extends NodeyardError {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    const errors = findings.filter(({ severity }) => severity === "error");
    const more =
      errors.length > 1 ? ` (and ${errors.length - 1} more; see nodeyard config-validate --strict)` : "";
    super("process.config_refused", `${errors[0] === undefined ? "" : formatFinding(errors[0])}${more}`);
    this.findings = findings;
  }
}
