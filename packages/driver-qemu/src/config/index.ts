import type { DriverConfig } from "@nodeyard/driver";
import type { QemuProviderConfig } from "../own.ts";
import { load } from "./load.ts";
import { schema } from "./schema.ts";

export const qemuConfig: DriverConfig<QemuProviderConfig> = { schema, load };
