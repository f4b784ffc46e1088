import { configurationSection, secureFileSection } from "@nodeyard/config";
import { type DriverConfig, Key } from "@nodeyard/driver";
import { type ZodType, z } from "zod";

/** The part of JSON Schema that this program uses. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly unit?: string;
  readonly deprecated?: boolean;
  readonly difference?: string;
  /** What a value must be to work, as words; of a list or mapping, each value. */
  readonly grammar?: string;
  /** What becomes of another value, where the loader takes it. */
  readonly otherwise?: string;
  /** What a list or mapping must be as a whole, as words. */
  readonly size?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly [other: string]: unknown;
}

type Drivers = readonly (readonly [name: string, config: Pick<DriverConfig, "schema">])[];

/** A driver that is named by its package or its path; its keys are not known here. */
const FROM_OUTSIDE = "^(npm:|\\.{0,2}/)";

/** JSON Schema of the file, for editors: the validator's schemas, with each driver's keys for its `driver`. */
export function jsonSchema(drivers: Drivers): JsonSchema {
  const file = convert(configurationSection.schema);
  const names = drivers.map(([name]) => name);
  const common = convert(Key.section(Key.commonProvider).schema);
  const provider = {
    type: "object",
    required: ["name"],
    properties: {
      ...common.properties,
      driver: { ...common.properties?.driver, anyOf: [{ enum: names }, { pattern: FROM_OUTSIDE }] },
    },
    allOf: drivers.map(([name, config]) => ({
      if: { properties: { driver: { const: name } }, required: ["driver"] },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema's keyword
      then: providerSchema(config),
    })),
  };
  return {
    title: "Nodeyard configuration",
    ...file,
    properties: { ...file.properties, providers: { ...file.properties?.providers, items: provider } },
  };
}

/** One driver's provider. */
export function providerSchema({ schema }: Pick<DriverConfig, "schema">): JsonSchema {
  const { $schema: _, ...provider } = convert(schema);
  return provider;
}

/** The secure file. */
export function secureFileSchema(): JsonSchema {
  return convert(secureFileSection.schema);
}

function convert(schema: ZodType): JsonSchema {
  return z.toJSONSchema(schema, { unrepresentable: "any", io: "output" }) as JsonSchema;
}
