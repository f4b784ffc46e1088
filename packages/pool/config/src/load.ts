import { compile } from "./compile/compile.ts";
import { readSource, type Source } from "./source.ts";
import { type JudgedProvider, judgeStrictly, type LookAt } from "./strict.ts";
import { secure as secureSection } from "./table.ts";
import type { Config, DriverRegistry, Finding } from "./types.ts";

/** The texts of the files, and the things that they may refer to. */
export interface ConfigInput {
  /** The text as it is in the file, before variables are filled in. */
  readonly text: string;
  /** The name that findings give the file; relative paths of drivers start from its folder. */
  readonly path: string;
  /** The text of the secure file; absent: none is named. */
  readonly secureText?: string;
  readonly securePath?: string;
  /** Of it only NODEPOOL_* is used (docs/contract/config.md, "Environment"). */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly drivers: DriverRegistry;
  /** Checks the files that the configuration names; absent: they are not checked. */
  readonly lookAt?: LookAt | undefined;
  /** Also find what differs from Nodepool. */
  readonly migration?: boolean;
}

/** What a configuration came to; warnings leave it usable. Findings are in the order of the file. */
export interface Loaded {
  /** Undefined when there is an error among the findings. */
  readonly config: Config | undefined;
  readonly findings: readonly Finding[];
}

/**
 * The loader: accepts what Nodepool's loader accepts, and turns findings of the validator into warnings. Pure; never throws.
 * `edge/read.ts` reads the files.
 */
export function loadConfig(input: ConfigInput): Loaded {
  const { main, secure, config } = judge(input);
  const findings = [...main.findings.all.map(tolerant), ...(secure?.findings.all ?? [])];
  const failed = findings.some(({ severity }) => severity === "error");
  return { config: failed ? undefined : config, findings: sorted(withoutEchoes(findings)) };
}

/**
 * Validator and loader over the same parsed text, as findings of two sources: what counts as an error is the caller's to say.
 * Pure; never throws.
 */
export function judge(input: ConfigInput): {
  readonly main: Source;
  readonly secure: Source | undefined;
  readonly config: Config | undefined;
  readonly providers: readonly JudgedProvider[];
} {
  const main = readSource(input.path, input.text, input.env);
  const secure =
    input.secureText === undefined
      ? undefined
      : readSource(input.securePath ?? "secure file", input.secureText, input.env, { mayBeEmpty: true });
  const providers = judgeStrictly(main, input.drivers, input);
  if (secure !== undefined) judgeSecure(secure);
  const config = main.raw === undefined ? undefined : compile(main, secure, input.drivers);
  return { main, secure, config, providers };
}

/** Values of the secure file that can never work; Nodepool has no validator of it. */
function judgeSecure({ strict, findings }: Source): void {
  for (const { source, path, message } of secureSection.notes(strict ?? {}))
    if (source === "value") findings.add("error", "load", path, message);
}

/** Findings of the validator alone do not keep the loader from working. */
function tolerant(finding: Finding): Finding {
  return finding.source === "schema" ? { ...finding, severity: "warning" } : finding;
}

/**
 * One finding per place and severity is enough when validator and loader say something about it: an error rather than a warning,
 * else the first. Two findings of the same reader at one place both stay.
 */
export function withoutEchoes(findings: readonly Finding[]): readonly Finding[] {
  const place = ({ file, path, line }: Finding) => JSON.stringify([file, path, line]);
  const errors = new Set(findings.filter(({ severity }) => severity === "error").map(place));
  const seen = new Set<string>();
  return findings.filter((finding) => {
    if (finding.path === "" || finding.source === "syntax") return true;
    const key = place(finding);
    if (finding.severity === "warning" && errors.has(key)) return false;
    if (seen.has(`${finding.source === "load"} ${key}`)) return true;
    const echoed = seen.has(`${finding.source !== "load"} ${key}`);
    seen.add(`${finding.source === "load"} ${key}`);
    return !echoed;
  });
}

/** By file as they come, then by place. */
export function sorted(findings: readonly Finding[]): readonly Finding[] {
  return [...findings].sort((a, b) => (a.file === b.file ? a.line - b.line || a.column - b.column : 0));
}
