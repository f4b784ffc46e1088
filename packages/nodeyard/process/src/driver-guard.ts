import {
  type Driver,
  type DriverConfig,
  DriverError,
  type LoadContext,
  type ProviderConfig,
  providerProblem,
} from "@nodeyard/driver";
import { defined, messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";

/**
 * A driver whose faults stay its own: a provider that its `load` cannot compile is a finding at the provider's place, and what `open`
 * resolves with has all methods; calls of these are guarded where it is opened. Its lines go to `log`; absent: to the log of the context.
 * `open` itself rejects with what the driver throws.
 */
export function guarded(driver: Driver, log?: Log): Driver {
  const { name, contract, capabilities, slots } = driver;
  return {
    name,
    contract,
    capabilities,
    config: guardedConfig(driver),
    ...defined({ slots, log }),
    async open(provider, context) {
      const opened = await driver.open(provider, { ...context, log: log ?? context.log });
      const problem = providerProblem(opened);
      if (problem === undefined) return opened;
      throw new DriverError("configuration", `driver ${name}: the value that open resolves with ${problem}`);
    },
  };
}

/** The driver's configuration part: whatever its `load` does, the result is a provider or a finding. */
function guardedConfig({ name, config }: Driver): DriverConfig {
  return {
    schema: config.schema,
    notes: config.notes,
    load(raw, context) {
      // Whether the driver itself has said what is wrong.
      let reported = false;
      const report: LoadContext["report"] = (finding) => {
        reported ||= finding.severity === "error";
        context.report(finding);
      };
      try {
        const compiled = config.load(raw, { ...context, report });
        if (compiled !== undefined && isCompiled(compiled)) return compiled;
        // Nothing, without a word why, would make the provider vanish silently.
        if (compiled === undefined && reported) return undefined;
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

/** What is read of a compiled provider before the driver is opened: configuration, scheduler and validator use its name and pools. */
function isCompiled(value: Partial<ProviderConfig>): boolean {
  return typeof value.name === "string" && Array.isArray(value.pools);
}
