/** Rows of REST v1 (docs/reference/openapi.json), as far as the page shows them. Times are ISO 8601. */
export interface NodeRow {
  readonly id: string;
  readonly state: string;
  readonly since: string | null;
  readonly label: readonly string[];
  readonly provider: string | null;
  readonly pool: string | null;
  readonly az: string | null;
  readonly locked: boolean;
  readonly allocated_to: string | null;
  readonly tenant: string | null;
  readonly hostname: string | null;
  readonly server_id: unknown;
  readonly interface_ip: string | null;
  readonly public_ipv4: string | null;
  readonly private_ipv4: string | null;
  readonly ipv6: string | null;
  readonly username: string | null;
  readonly connection_type: string | null;
  readonly connection_port: number | string | null;
  readonly host_keys: readonly string[];
  readonly launcher: string | null;
  readonly comment: string | null;
  readonly hold_job: string | null;
  readonly backing_node: string | null;
  readonly dead_letter: boolean;
}

export interface RequestRow {
  readonly id: string;
  readonly state: string;
  readonly since: string | null;
  readonly created: string | null;
  readonly labels: readonly string[];
  readonly nodes: readonly string[];
  readonly requestor: string | null;
  readonly lease: string | null;
  readonly tenant: string | null;
  readonly relative_priority: number;
  readonly declined_by: readonly string[];
}

export interface LeaseRow {
  readonly id: string;
  readonly state: string;
  readonly owner: string;
  readonly labels: readonly string[];
  readonly request: string | null;
  readonly nodes: readonly string[];
  readonly tenant: string | null;
  readonly created: string | null;
  readonly expires: string | null;
  readonly until: string | null;
  readonly heartbeat_seconds: number | null;
  readonly verdict: string | null;
}

export interface ImageRow {
  readonly image: string;
  readonly paused: boolean;
  readonly build_requested: boolean;
  readonly builds: Readonly<Record<string, number>>;
  readonly uploaded_to: readonly string[];
  readonly uploading_to: readonly string[];
}

export interface PoolRow {
  readonly id: string;
  readonly provider: string | null;
  readonly pool: string | null;
  readonly launcher: string;
  readonly state: string;
  readonly labels: readonly string[];
  readonly priority: number;
  readonly paused: boolean;
}

export interface MemberRow {
  readonly id: string;
  readonly kind: string;
  readonly hostname: string;
  readonly state: string;
  readonly version: string | null;
}

/** What the stream of events tells of. */
export interface Rows {
  readonly node: NodeRow;
  readonly request: RequestRow;
  readonly lease: LeaseRow;
  readonly image: ImageRow;
  readonly pool: PoolRow;
  readonly member: MemberRow;
}
export type Kind = keyof Rows;

/** One line of `GET /v1/leases/{id}/nodes`. */
export interface Access {
  readonly id: string;
  readonly label: readonly string[];
  readonly provider: string | null;
  readonly interface_ip: string | null;
  readonly connection_type: string | null;
  readonly connection_port: number | null;
  readonly username: string | null;
  readonly host_keys: readonly string[];
}

export interface Progress {
  readonly phase: string | null;
  readonly bytes: number;
  readonly total_bytes: number | null;
  readonly bytes_per_second: number;
  readonly eta_seconds: number | null;
}

export interface BuildRow {
  readonly id: string;
  readonly image: string;
  readonly builder: string | null;
  readonly formats: readonly string[];
  readonly state: string;
  readonly since: string | null;
  readonly progress: Progress | null;
}

export interface UploadRow {
  readonly id: string;
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  readonly external_name: string | null;
  readonly state: string;
  readonly since: string | null;
  readonly progress: Progress | null;
}
