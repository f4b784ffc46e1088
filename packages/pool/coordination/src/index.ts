export * from "./close-provider.ts";
export * from "./controller.ts";
export * from "./effects.ts";
export * from "./election.ts";
export { announceMember, findInstallation, MEMBERS, openInstallation } from "./installation.ts";
export * from "./membership.ts";
export { poolComponent, Registration } from "./registration.ts";
export * from "./roots.ts";
export * from "./standing-reporter.ts";
