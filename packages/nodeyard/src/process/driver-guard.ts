import {
  type Driver,
  type DriverConfig,
  DriverError,
  decorate,
  type LoadContext,
  type ProviderConfig,
  providerProblem,
  typedErrors,
} from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";

/**
 * A driver whose faults stay its own: a provider that its `load` cannot compile is a finding at the provider's place, what
 * `open` resolves with has all methods, and whatever those throw is a DriverError.
 */
export function guarded(driver: Driver): Driver {
  const { name, contract, capabilities } = driver;
  return {
    name,
    contract,
    capabilities,
    config: guardedConfig(driver),
    async open(provider, context) {
      const opened = await driver.open(provider, context);
      const problem = providerProblem(opened);
      if (problem === undefined) return decorate(opened, typedErrors(provider.name));
      throw new DriverError("configuration", `driver ${name}: the value that open resolves with ${problem}`);
    },
  };
}

function guardedConfig({ name, config }: Driver): DriverConfig {
  return {
    schema: config.schema,
    notes: config.notes,
    load(raw, context) {
      let told = false;
      const report: LoadContext["report"] = (finding) => {
        told ||= finding.severity === "error";
        context.report(finding);
      };
      try {
        const compiled = config.load(raw, { ...context, report });
        if (compiled !== undefined && isCompiled(compiled)) return compiled;
        // Nothing, without a word why, would make the provider vanish silently.
        if (compiled === undefined && told) return undefined;
        throw new Error(
          `it made ${compiled === undefined ? "nothing of it" : "something without name or pools"}`,
        );
      } catch (error) {
        const message = `makes driver ${name} fail, which is a bug in the driver: ${messageOf(error)}`;
        context.report({ severity: "error", path: [], message });
        return undefined;
      }
    },
  };
}

/** What is read of it before the driver is opened. */
function isCompiled(value: Partial<ProviderConfig>): boolean {
  return typeof value.name === "string" && Array.isArray(value.pools);
}
