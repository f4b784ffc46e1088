import { closed, type DriverConfig } from "@nodeyard/driver";
import { type ZodType, z } from "zod";
import { providerKeys, topSchema } from "../schema/top.ts";

/** What this program uses of JSON Schema. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly unit?: string;
  readonly deprecated?: boolean;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly [other: string]: unknown;
}

type Drivers = readonly (readonly [name: string, config: DriverConfig])[];

/** A driver that is named by its package or its path; its keys are not known here. */
const FROM_OUTSIDE = "^(npm:|\\.{0,2}/)";

/** JSON Schema of the file, for editors: the schemas that judge it, with each driver's keys where `driver` names it. */
export function jsonSchema(drivers: Drivers): JsonSchema {
  const top = convert(topSchema);
  const names = drivers.map(([name]) => name);
  const common = convert(closed(providerKeys, ["name"]));
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
      then: providerSchema(common, config),
    })),
  };
  return {
    title: "Nodeyard configuration",
    ...top,
    properties: { ...top.properties, providers: { ...top.properties?.providers, items: provider } },
  };
}

/** One driver's provider, with the keys that all have. */
export function providerSchema(common: JsonSchema, { schema }: DriverConfig): JsonSchema {
  const { $schema: _, ...own } = convert(schema);
  return {
    ...own,
    properties: { ...common.properties, ...own.properties },
    required: [...(common.required ?? []), ...(own.required ?? [])],
  };
}

export function commonProviderSchema(): JsonSchema {
  return convert(closed(providerKeys, ["name"]));
}

function convert(schema: ZodType): JsonSchema {
  return z.toJSONSchema(schema, { unrepresentable: "any", io: "output" }) as JsonSchema;
}
