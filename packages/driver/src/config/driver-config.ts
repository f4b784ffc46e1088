import type { ZodType } from "zod";
import { commonProvider } from "./common-keys.ts";
import type { ProviderConfig } from "./compiled.ts";
import type { Note } from "./field.ts";
import { type ConfigFinding, Reader } from "./reader.ts";
import { section, type Table, type Values } from "./section.ts";
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
  report(finding: ConfigFinding): void;
}

/** The configuration half of a driver: pure, no I/O. `driverConfig` makes it of a table. */
export interface DriverConfig<Config extends ProviderConfig = ProviderConfig> {
  /**
   * What the validator takes for a provider (docs/contract/config.md, "Validator and loader"), the keys that all have included. Source of
   * validation, of the JSON Schema for editors and of the reference page.
   */
  readonly schema: ZodType;
  /** What there is to say of keys that are accepted. */
  notes(raw: unknown): readonly Note[];
  /** Compiles what the loader accepts. Throws nothing: an error finding makes the load fail. */
  load(raw: Readonly<Record<string, unknown>>, context: LoadContext): Config | undefined;
}

/**
 * The configuration of a driver, of the one table of its provider's keys; those that all providers have come by themselves. `compile`
 * gets the values of both, and does what concerns several keys; without a value that the loader needs it is not called.
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
    notes: (raw) => whole.notes(raw),
    load(raw, context) {
      const at = new Reader(raw, [], (finding) => context.report(finding));
      const values = whole.read(at) as (Values<typeof commonProvider> & Values<T>) | undefined;
      return values === undefined ? undefined : compile({ ...values, driver, at }, context);
    },
  };
}
