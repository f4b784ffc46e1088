import type { Reply, RowOf } from "@nodeyard/client";

/** Rows of REST v1, with the types of its OpenAPI document. Times are ISO 8601. */
export type NodeRow = Brief<RowOf<"list_nodes">>;
export type RequestRow = Brief<RowOf<"list_requests">>;
export type LeaseRow = Brief<RowOf<"list_leases">>;
export type ImageRow = Brief<RowOf<"list_images">>;
export type BuildRow = RowOf<"list_builds">;
export type UploadRow = RowOf<"list_uploads">;
export type Progress = NonNullable<BuildRow["progress"]>;
export type Provider = RowOf<"list_providers">;
export type Use = Provider["standings"][number];
export type Day = Reply<"get_history">;
export type Machines = Reply<"list_sliver_machines">;

/** A row as the stream of events sends it: without keys that are null. */
type Brief<T> = { readonly [K in keyof T]: null extends T[K] ? T[K] | undefined : T[K] };

/** Kinds of rows in the stream of events. */
export interface Rows {
  readonly node: NodeRow;
  readonly request: RequestRow;
  readonly lease: LeaseRow;
  readonly image: ImageRow;
  readonly pool: Brief<RowOf<"list_pools">>;
  readonly member: Brief<RowOf<"list_members">>;
  readonly standing: Brief<RowOf<"list_standings">>;
}
export type Kind = keyof Rows;
