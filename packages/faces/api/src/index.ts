export { EVENTS, EventFile } from "./edge/event-file.ts";
export type { TlsFiles } from "./edge/tls.ts";
export { ListenError } from "./errors.ts";
export { isLoopback } from "./http/caller.ts";
export { HttpApi, type ListenAddress } from "./http-api.ts";
export {
  type Audit,
  type AuditEntry,
  BACKUP_PATH,
  type Backup,
  type ConfigPlan,
  type Known,
  type Page,
  type PastAudit,
  type Readiness,
  type Sources,
  type Work,
} from "./known.ts";

/** The OpenAPI document of REST v1. Its generator is loaded only by this call. */
export async function openApiDocument(): Promise<object> {
  return (await import("./v1/routes.ts")).openApiDocument();
}
