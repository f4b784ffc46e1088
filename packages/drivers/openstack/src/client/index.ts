export type { Credential } from "./auth.ts";
export type { ServiceLocation, ServiceName } from "./catalog.ts";
export { compareVersions, Service, type ServiceCall } from "./service.ts";
export { Session } from "./session.ts";
