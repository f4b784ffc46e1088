export type {
  Ages,
  Backend,
  Build,
  BuildProgress,
  ListName,
  NodeAccess,
  Requested,
  Rows,
  Watched,
} from "./backend.ts";
export { clientOf, withBackend } from "./with-backend.ts";
