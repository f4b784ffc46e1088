import type { LeaseRow, NodeAccess as RestAccess, RowOf } from "@nodeyard/client";
import type { Lease } from "@nodeyard/model";
import type { LeaseProgress } from "@nodeyard/operations";
import { ageIn, type Row } from "@nodeyard/operations/listing";
import { compareText } from "@nodeyard/runtime";
import type { Ages, BuildProgress, NodeAccess } from "./backend.ts";

/** ISO 8601 as milliseconds. */
export function msOf(moment: string | null): number | null {
  return moment === null ? null : Date.parse(moment);
}

/** The age of a state, as the list writes it; null: the record does not say. */
function ageOf(since: string | null, now: number, ages: Ages): string | number | null {
  const ms = msOf(since);
  return ms === null ? null : ageIn(ages, (now - ms) / 1_000);
}

/** A server's row of a node as `listing` has it: `AZ` and "locked" are spelled as in Nodepool's tables, which scripts parse. */
export function nodeRowOf({ az, locked, since, ...row }: RowOf<"list_nodes">, now: number, ages: Ages): Row {
  return { ...row, AZ: az, locked: locked ? "locked" : "unlocked", age: ageOf(since, now, ages) };
}

/** A server's row of a request. Ages of requests are always seconds: the table has no column for them, only `--json`. */
export function requestRowOf({ labels, since, created, ...row }: RowOf<"list_requests">, now: number): Row {
  const seconds = msOf(created ?? since);
  return {
    ...row,
    node_types: labels,
    age: ageOf(since, now, "seconds"),
    created: seconds === null ? null : seconds / 1_000,
  };
}

/** A server's row of a build. Its progress is left out: the table of builds has none. */
export function buildRowOf(
  { since, progress: _, ...row }: RowOf<"list_builds">,
  now: number,
  ages: Ages,
): Row {
  return { ...row, age: ageOf(since, now, ages) };
}

/** A server's row of an upload. The old names: `id` is of the build. */
export function uploadRowOf(
  { build, upload, since, progress: _, ...row }: RowOf<"list_uploads">,
  now: number,
  ages: Ages,
): Row {
  return { ...row, id: build, upload_id: upload, age: ageOf(since, now, ages) };
}

/** The progress of a build: a server's seconds as the milliseconds that builders report. */
export function progressOf(row: NonNullable<RowOf<"list_builds">["progress"]>): BuildProgress {
  const ms = (seconds: number) => seconds * 1_000;
  return {
    phase: row.phase ?? "",
    bytes: row.bytes,
    total: row.total_bytes,
    bytesPerSecond: row.bytes_per_second,
    etaMs: row.eta_seconds === null ? null : ms(row.eta_seconds),
    elapsedMs: ms(row.elapsed_seconds),
  };
}

/** By image, then the newest first: the order of `listBuilds`, since a server sorts by id. */
export function compareBuilds(a: RowOf<"list_builds">, b: RowOf<"list_builds">): number {
  return compareText(a.image, b.image) || (msOf(b.since) ?? 0) - (msOf(a.since) ?? 0);
}

/** By image, build, provider and number: the order of `listUploads`. */
export function compareUploads(a: RowOf<"list_uploads">, b: RowOf<"list_uploads">): number {
  const keys = ["image", "build", "provider", "upload"] as const;
  return keys.reduce((order, key) => order || compareText(a[key], b[key]), 0);
}

/** A server's row of a lease as the tree has a lease: times are milliseconds of the tree. */
export function leaseOf(row: LeaseRow): Lease {
  const { heartbeat_seconds: heartbeat, created, expires, until, ...rest } = row;
  return {
    ...rest,
    created: msOf(created) ?? 0,
    expires: msOf(expires) ?? 0,
    until: msOf(until),
    heartbeat: heartbeat === null ? null : heartbeat * 1_000,
  };
}

/** A server's row for the login to a node, by the names of its record. */
export function accessOf(row: RestAccess): NodeAccess {
  return {
    id: row.id,
    type: row.label,
    provider: row.provider,
    interfaceIp: row.interface_ip,
    connectionType: row.connection_type,
    connectionPort: row.connection_port,
    username: row.username,
    hostKeys: row.host_keys,
  };
}

type Nodes = LeaseProgress["nodes"];

/** What progress shows of a node. */
export function progressNode(
  row: RowOf<"list_nodes">,
): Nodes extends ReadonlyMap<string, infer T> ? T : never {
  return { id: row.id, state: row.state, type: row.label, provider: row.provider, pool: row.pool };
}
