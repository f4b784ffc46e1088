import type { Reply, RowOf } from "@nodeyard/client";

/** What REST v1 answers, with the types of its document. Times are ISO 8601. */
export type NodeRow = RowOf<"list_nodes">;
export type RequestRow = RowOf<"list_requests">;
export type LeaseRow = RowOf<"list_leases">;
export type ImageRow = RowOf<"list_images">;
export type BuildRow = RowOf<"list_builds">;
export type UploadRow = RowOf<"list_uploads">;
export type Progress = NonNullable<BuildRow["progress"]>;
export type Provider = RowOf<"list_providers">;
export type Standing = Provider["standings"][number];
export type Day = Reply<"get_history">;
export type Machines = Reply<"list_sliver_machines">;

/** What the stream of events tells of. */
export interface Rows {
  readonly node: NodeRow;
  readonly request: RequestRow;
  readonly lease: LeaseRow;
  readonly image: ImageRow;
  readonly pool: RowOf<"list_pools">;
  readonly member: RowOf<"list_members">;
}
export type Kind = keyof Rows;
