import type { DriverConfig } from "@nodeyard/driver";
import type { OpenstackProviderConfig } from "../own.ts";
import { load } from "./load.ts";
import { schema } from "./schema.ts";

export const openstackConfig: DriverConfig<OpenstackProviderConfig> = {
  schema,
  withoutEffect: ["nodepool-id", "clean-floating-ips"],
  load,
};
