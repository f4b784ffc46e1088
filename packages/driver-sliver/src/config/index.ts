import type { DriverConfig } from "@nodeyard/driver";
import type { SliverProviderConfig } from "../own.ts";
import { load } from "./load.ts";
import { schema } from "./schema.ts";

export const sliverConfig: DriverConfig<SliverProviderConfig> = { schema, load };
