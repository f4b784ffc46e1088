import type { DriverConfig } from "@nodeyard/driver";
import { awsConfig } from "@nodeyard/driver-aws";
import { azureConfig } from "@nodeyard/driver-azure";
import { fakeConfig } from "@nodeyard/driver-fake";
import { gceConfig } from "@nodeyard/driver-gce";
import { ibmvpcConfig } from "@nodeyard/driver-ibmvpc";
import { kubernetesConfig, openshiftConfig, openshiftpodsConfig } from "@nodeyard/driver-kubernetes";
import { metastaticDriver } from "@nodeyard/driver-metastatic";
import { openstackConfig } from "@nodeyard/driver-openstack";
import { staticConfig } from "@nodeyard/driver-static";
import { Drivers, loadModule } from "@nodeyard/process";
import {
  type Config,
  type ConfigInput,
  type DriverRegistry,
  formatFinding,
  loadConfig,
  validateConfig,
} from "../src/index.ts";

const built: Readonly<Record<string, DriverConfig>> = {
  fake: fakeConfig as DriverConfig,
  static: staticConfig as DriverConfig,
  openstack: openstackConfig as DriverConfig,
  aws: awsConfig as DriverConfig,
  azure: azureConfig as DriverConfig,
  gce: gceConfig as DriverConfig,
  ibmvpc: ibmvpcConfig as DriverConfig,
  kubernetes: kubernetesConfig as DriverConfig,
  openshift: openshiftConfig as DriverConfig,
  openshiftpods: openshiftpodsConfig as DriverConfig,
  metastatic: metastaticDriver.config as DriverConfig,
};
const registry = new Drivers(loadModule);

export const drivers: DriverRegistry = {
  get: (name) => built[name] ?? (name === "example" ? registry.get(name) : undefined),
  names: () => Object.keys(built),
};

type Env = Readonly<Record<string, string>>;

/** Exit code of config-validate with `strict`; without it that of Nodepool's, which reads few references. */
export function exitCode(
  text: string,
  options: { readonly env?: Env; readonly strict?: boolean } = {},
): number {
  const { env = {}, strict = false } = options;
  const judged = validateConfig({ text, path: "n.yaml", env, drivers, strict });
  if (strict) return judged.exitCode;
  const fails = judged.findings.some(
    ({ severity, source }) => severity === "error" && (source === "syntax" || source === "schema"),
  );
  return fails ? 1 : 0;
}

export function verdict(text: string, strict = false, lookAt?: ConfigInput["lookAt"]): string[] {
  return validateConfig({ text, path: "n.yaml", env: {}, drivers, strict, lookAt }).findings.map(reported);
}

export function load(
  text: string,
  secureText?: string,
  env: Env = {},
): { config: Config | undefined; errors: string[]; warnings: string[] } {
  const secure = secureText === undefined ? {} : { secureText, securePath: "secure.yaml" };
  const { config, findings } = loadConfig({ text, path: "n.yaml", env, drivers, ...secure });
  const of = (severity: string) =>
    findings.filter((finding) => finding.severity === severity).map(formatFinding);
  return { config, errors: of("error"), warnings: of("warning") };
}

/** The configuration of a text that must load. */
export function loaded(text: string, secureText?: string, env: Env = {}): Config {
  const { config, errors } = load(text, secureText, env);
  if (config === undefined) throw new Error(errors.join("\n"));
  return config;
}

function reported(finding: Parameters<typeof formatFinding>[0]): string {
  return `${finding.severity} ${formatFinding(finding)}`;
}
