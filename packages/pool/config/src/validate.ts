import { type ConfigInput, judge, sorted, withoutEchoes } from "./load.ts";
import type { JudgedProvider } from "./strict.ts";
import type { Finding } from "./types.ts";

/** What `config-validate` says; exit code 1 if a finding is an error. */
export interface ValidationResult {
  readonly exitCode: 0 | 1;
  readonly findings: readonly Finding[];
  /** Whether a launcher of this installation can work with the file. */
  readonly isLoadable: boolean;
  /** Providers with a name, in the order of the file. */
  readonly providers: readonly JudgedProvider[];
  /** Keys in use that do something else than in Nodepool, where `migration` asks for them. */
  readonly differences: readonly Finding[];
  /** Labels of the top level that only providers without a driver offer. */
  readonly lostLabels: readonly string[];
}

/**
 * `config-validate` (docs/contract/config.md, "Validator and loader"): what the validator or the loader rejects is an error. With `strict` so
 * are keys without effect, and what this machine lacks. The secure file is not read.
 */
export function validateConfig(input: ConfigInput & { readonly strict?: boolean }): ValidationResult {
  // Without the secure file: where a file is validated, its credentials need not be.
  const { secureText: _text, securePath: _path, ...mainOnly } = input;
  const { main, config, providers: judged } = judge(mainOnly);
  const isDifference = ({ source }: Finding) => source === "difference";
  const judgements = main.findings.all.filter((finding) => !isDifference(finding));
  const findings = judgements.map((finding): Finding => {
    // Another machine may have what is missing here: a driver, or a file.
    if (finding.source !== "machine" && finding.source !== "effect") return finding;
    const fails = input.strict === true && (finding.severity === "error" || finding.source === "effect");
    return { ...finding, severity: fails ? "error" : "warning" };
  });
  const failed = findings.some(({ severity }) => severity === "error");
  const providers = judged.map((provider): JudgedProvider => {
    const pools = config?.providers.find(({ name }) => name === provider.name)?.pools ?? [];
    return provider.isServed
      ? { ...provider, labels: pools.flatMap((pool) => [...pool.labels.keys()]) }
      : provider;
  });
  const labelsOf = (isServed: boolean) =>
    new Set(providers.filter((provider) => provider.isServed === isServed).flatMap(({ labels }) => labels));
  const kept = labelsOf(true);
  return {
    exitCode: failed ? 1 : 0,
    findings: sorted(withoutEchoes(findings)),
    // Files that this machine lacks do not count: the launcher's may have them.
    isLoadable:
      providers.every(({ isServed }) => isServed) &&
      main.findings.all.every(
        ({ severity, source }) => severity !== "error" || source === "schema" || source === "machine",
      ),
    providers,
    differences: sorted(main.findings.all.filter(isDifference)),
    lostLabels: [...labelsOf(false)].filter((label) => !kept.has(label)),
  };
}
