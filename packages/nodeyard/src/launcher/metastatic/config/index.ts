import type { DriverConfig } from "@nodeyard/driver";
import { load } from "./load.ts";
import type { MetastaticProvider } from "./own.ts";
import { schema } from "./schema.ts";

export const metastaticConfig: DriverConfig<MetastaticProvider> = { schema, load };
