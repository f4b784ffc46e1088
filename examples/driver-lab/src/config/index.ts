import type { DriverConfig } from "@nodeyard/driver";
import type { LabProviderConfig } from "../own.ts";
import { load } from "./load.ts";
import { schema } from "./schema.ts";

export const labConfig: DriverConfig<LabProviderConfig> = { schema, load };
