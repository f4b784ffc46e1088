import type { ZodType } from "zod";
import { commonProvider } from "./common-keys.ts";
import type { LabelConfig, ProviderConfig } from "./compiled.ts";
import type { Note } from "./field.ts";
import { type ConfigFinding, Reader } from "./reader.ts";
import { type Section, section, type Table, type Values } from "./section.ts";
import type { Entry } from "./words.ts";

/** What a driver needs from the rest of the file to compile its part. */
export interface LoadContext {
  /** Names of the top-level labels. */
  readonly labels: ReadonlySet<string>;
  /** Top-level, non-abstract diskimages by name. */
  readonly diskimages: ReadonlyMap<
    string,
    { readonly username: string; readonly pythonPath: string; readonly shellType: string | null }
  >;
  /** Where the file lists each host that exists without the pool, by login: one map for all providers. Absent: for this one alone. */
  readonly hosts?: Map<string, string>;
  report(finding: ConfigFinding): void;
}

/** The configuration part of a driver: pure, without I/O. `driverConfig` makes it from a table. */
export interface DriverConfig<Config extends ProviderConfig = ProviderConfig> {
  /**
   * What the validator accepts for a provider (docs/contract/config.md, "Validator and loader"), the keys of all providers included. It is
   * the source of validation, of the JSON Schema for editors and of the reference page.
   */
  readonly schema: ZodType;
  /** The table behind both. Absent in a driver from elsewhere that is not made by `driverConfig`. */
  readonly keys?: Section<unknown>;
  /** Notes on keys that are accepted. */
  notes(raw: unknown): readonly Note[];
  /** As `Types.of` of its providers, for what opens none. Absent: a label's machines are bought as the label. */
  readonly typeOf?: ((label: LabelConfig) => string) | undefined;
  /** Compiles what the loader accepts. Never throws: a finding of severity "error" makes the load fail. */
  load(raw: Readonly<Record<string, unknown>>, context: LoadContext): Config | undefined;
}

/**
 * Makes the configuration of a driver from the table of its provider's keys. Keys of all providers are added. `compile` receives all
 * values and handles what concerns several keys. It is not called when a key is missing that the loader needs.
 */
export function driverConfig<T extends Table, Config extends ProviderConfig>(
  driver: string,
  table: T,
  compile: (
    provider: Entry<Values<typeof commonProvider> & Values<T>>,
    context: LoadContext,
  ) => Config | undefined,
): DriverConfig<Config> {
  const whole = section({ ...commonProvider, ...table });
  return {
    schema: whole.schema,
    keys: whole,
    notes: (raw) => whole.notes(raw),
    load(raw, context) {
      for (const { source, path, message } of whole.notes(raw))
        if (source === "value") context.report({ severity: "error", path, message });
      // A label is read once for each of its offerings, and what is wrong with it is reported once.
      const reported = new Set<string>();
      const at = new Reader(raw, [], (finding) => {
        const key = JSON.stringify(finding);
        if (!reported.has(key)) context.report(finding);
        reported.add(key);
      });
      const values = whole.read(at) as (Values<typeof commonProvider> & Values<T>) | undefined;
      return values === undefined ? undefined : compile({ ...values, driver, at }, context);
    },
  };
}
