export { ListenError } from "./errors.ts";
export { isLoopback } from "./http/caller.ts";
export { HttpApi, type ListenAddress } from "./http-api.ts";
export {
  BACKUP_PATH,
  type Backup,
  type Known,
  type Page,
  type Readiness,
  type Sources,
  type Work,
} from "./known.ts";
