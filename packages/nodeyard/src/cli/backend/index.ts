export type { Ages, Backend, ListName, NodeAccess, Requested, Rows, Watched } from "./backend.ts";
export { withBackend } from "./with-backend.ts";
