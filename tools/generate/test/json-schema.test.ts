import { expect, test } from "vitest";
import { configurationSchema } from "../configuration.ts";
import type { JsonSchema } from "../json-schema.ts";

interface ProviderSchema extends JsonSchema {
  readonly properties: { readonly driver: { readonly anyOf: readonly [{ readonly enum: string[] }] } };
  readonly allOf: readonly {
    readonly if: { readonly properties: { readonly driver: { readonly const: string } } };
    readonly then: JsonSchema;
  }[];
}

test("an editor knows the keys of every driver that the validator knows", () => {
  const { properties } = JSON.parse(configurationSchema()) as JsonSchema;
  const provider = properties!.providers!.items as ProviderSchema;
  const branches = new Map(
    provider.allOf.map(({ if: { properties }, then }) => [properties.driver.const, then]),
  );
  expect([...branches.keys()]).toEqual(provider.properties.driver.anyOf[0].enum);
  for (const name of ["openstack", "static", "ibmvpc"]) {
    const keys = branches.get(name);
    expect(keys?.additionalProperties, `a misspelt key of ${name} is seen`).toBe(false);
    expect(Object.keys(keys?.properties ?? {}), name).toEqual(expect.arrayContaining(["name", "pools"]));
  }
});
