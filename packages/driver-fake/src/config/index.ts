import type { DriverConfig } from "@nodeyard/driver";
import type { FakeProviderConfig } from "../own.ts";
import { load } from "./load.ts";
import { schema } from "./schema.ts";

export const fakeConfig: DriverConfig<FakeProviderConfig> = { schema, withoutEffect: ["nodepool-id"], load };
