export { AzureDouble, type Call, GROUPS, LOCATION, SUBSCRIPTION } from "./double/azure.ts";
export { SECRET, TENANT } from "./double/logins.ts";
export { type AzureSettings, type Fault, SIZES, ZONES } from "./double/settings.ts";
export type { Stored } from "./double/world.ts";
export { startAzure } from "./server.ts";
