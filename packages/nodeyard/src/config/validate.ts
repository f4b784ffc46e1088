import { type ConfigInput, judge, sorted, withoutEchoes } from "./load.ts";
import type { Finding } from "./types.ts";

/** What `config-validate` says; exit code 1 if a finding is an error. */
export interface ValidationResult {
  readonly exitCode: 0 | 1;
  readonly findings: readonly Finding[];
}

/**
 * `config-validate` (docs/contract/config.md, "Validator and loader"): the validator decides. What only the loader rejects is a
 * warning, unless `strict` is set: then it is an error, and so are keys without effect. The secure file is not read.
 */
export function validateConfig(input: ConfigInput & { readonly strict?: boolean }): ValidationResult {
  const { secureText: _text, securePath: _path, ...mainOnly } = input;
  const { main } = judge(mainOnly);
  const findings = main.findings.all.map((finding): Finding => {
    if (finding.source === "syntax" || finding.source === "schema") return finding;
    const fails = input.strict === true && (finding.severity === "error" || finding.source === "effect");
    return { ...finding, severity: fails ? "error" : "warning" };
  });
  const failed = findings.some(({ severity }) => severity === "error");
  return { exitCode: failed ? 1 : 0, findings: sorted(withoutEchoes(findings)) };
}
