import type { EventRows, Reply, RowOf } from "@nodeyard/client";

/** Rows of REST v1, with the types of its OpenAPI document. Times are ISO 8601. */
export type NodeRow = Rows["node"];
export type RequestRow = Rows["request"];
export type LeaseRow = Rows["lease"];
export type ImageRow = Rows["image"];
export type BuildRow = RowOf<"list_builds">;
export type UploadRow = RowOf<"list_uploads">;
export type Progress = NonNullable<BuildRow["progress"]>;
export type Provider = RowOf<"list_providers">;
export type TenantRow = RowOf<"list_tenants">;
export type Use = Provider["standings"][number];
export type Day = Reply<"get_history">;
export type Machines = Reply<"list_sliver_machines">;

/** A row as the stream of events sends it: without keys that are null. */
type Brief<T> = { readonly [K in keyof T]: null extends T[K] ? T[K] | undefined : T[K] };

/** Kinds of rows in the stream of events. */
export type Rows = { readonly [K in keyof EventRows]: Brief<EventRows[K]> };
export type Kind = keyof Rows;
