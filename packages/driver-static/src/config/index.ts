import type { DriverConfig } from "@nodeyard/driver";
import type { StaticProviderConfig } from "../own.ts";
import { load } from "./load.ts";
import { schema } from "./schema.ts";

export const staticConfig: DriverConfig<StaticProviderConfig> = {
  schema,
  honoured: ["pools.*.nodes.*.ssh-port"],
  load,
};
