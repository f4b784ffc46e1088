export type { Credential } from "./auth.ts";
export type { ServiceName } from "./catalog.ts";
export { compareVersions, Service, type ServiceCall, type ServiceLocation } from "./service.ts";
export { Session } from "./session.ts";
