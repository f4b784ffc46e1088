import {
  apiRoles,
  costOf,
  type Lease,
  leaseIdOf,
  leaseStates,
  leaseVerdicts,
  type NodeRecord,
  nodeStates,
  partRows,
  partStates,
  priceOf,
  type RequestRecord,
  requestStates,
  slotPlace,
  type Token,
} from "@nodeyard/model";
import { iso, isoOf, type ListedNode } from "../index.ts";
import { ageOf, type Column, columns, msOf } from "./columns.ts";
import {
  about,
  anything,
  boolean,
  type Fields,
  maybe,
  moment,
  number,
  oneOf,
  text,
  texts,
} from "./fields.ts";
import { ageIn, labelsText } from "./table.ts";

/** A node, for programs. A key with a heading is a column of `list --detail`, after those of Nodepool. */
export const nodeFields: Fields<ListedNode> = {
  id: [text, ({ record }) => record.id],
  provider: [maybe, ({ record }) => record.provider],
  pool: [maybe, ({ record }) => record.pool],
  label: [texts, ({ record }) => record.type],
  state: [oneOf(nodeStates), ({ record }) => record.state],
  since: [moment, ({ record }) => isoOf(record.stateTime)],
  locked: [boolean, ({ locked }) => locked],
  allocated_to: [maybe, ({ record }) => record.allocatedTo],
  tenant: [maybe, ({ record }) => nodeTenant(record)],
  server_id: [anything, ({ record }) => record.externalId],
  hostname: [maybe, ({ record }) => record.hostname],
  interface_ip: [maybe, ({ record }) => record.interfaceIp],
  public_ipv4: [maybe, ({ record }) => record.publicIpv4],
  private_ipv4: [maybe, ({ record }) => record.privateIpv4],
  ipv6: [maybe, ({ record }) => record.publicIpv6],
  az: [maybe, ({ record }) => record.az],
  connection_type: [maybe, ({ record }) => record.connectionType],
  // An object here holds a cluster's credentials.
  connection_port: [
    (z) => z.union([z.int(), z.string()]),
    ({ record: { connectionPort: port } }) => (typeof port === "number" ? port : "redacted"),
  ],
  username: [maybe, ({ record }) => record.username],
  host_keys: [texts, ({ record }) => record.hostKeys],
  launcher: [maybe, ({ record }) => record.launcher],
  hold_job: [maybe, ({ record }) => record.holdJob],
  comment: [maybe, ({ record }) => record.comment],
  user_data: [anything, ({ record }) => record.userData],
  driver_data: [anything, ({ record }) => record.driverData],
  backing_node: [maybe, ({ record }) => slotPlace(record)?.backing ?? null, "Backing Node"],
  slot: [(z) => z.int().nullable(), ({ record }) => record.slot, "Slot"],
  dead_letter: [boolean, ({ deadLetter }) => deadLetter, "Dead Letter"],
  cost: [
    (z) =>
      z
        .object({ per_hour: z.number(), currency: z.string() })
        .nullable()
        .describe("of its machine, as it was known when the node became ready; null: not known"),
    ({ record }) => costOf(priceOf(record)),
  ],
  remark: [
    (z) =>
      z
        .object({ at: moment(z), text: maybe(z) })
        .nullable()
        .describe(
          "what its driver last said of its machine, such as that the cloud takes it back; null: nothing",
        ),
    ({ remark }) => (remark === undefined ? null : { at: iso(remark.at), text: remark.text }),
  ],
};

/** The current tenant. The record of a deallocated node keeps the name of the last one. */
export function nodeTenant({ allocatedTo, tenantName }: NodeRecord): string | null {
  return allocatedTo === null ? null : tenantName;
}

/** Columns of `list`, with Nodepool's headings and keys. Their order is that of the table. */
export const nodeColumns: readonly Column[] = columns({
  ID: "id",
  Provider: "provider",
  Label: "label",
  "Server ID": "server_id",
  "Public IPv4": "public_ipv4",
  IPv6: "ipv6",
  State: "state",
  Age: ["age", ageOf("since")],
  Locked: ["locked", ({ locked }) => (locked === true ? "locked" : "unlocked")],
});

/** All that the old web application and `list --detail` show of a node. */
export const oldNodeColumns: readonly Column[] = [
  ...nodeColumns,
  ...columns({
    Pool: "pool",
    Hostname: "hostname",
    "Private IPv4": "private_ipv4",
    AZ: ["AZ", ({ az }) => az],
    Username: "username",
    Port: "connection_port",
    Launcher: "launcher",
    "Allocated To": "allocated_to",
    "Hold Job": "hold_job",
    Comment: "comment",
    "User Data": "user_data",
    "Driver Data": "driver_data",
  }),
];

/** Columns of `list --detail`: Nodepool's, and Nodeyard's own. */
export const nodeDetailColumns: readonly Column[] = [
  ...oldNodeColumns,
  ...Object.entries(nodeFields).flatMap(([key, [, , heading]]) =>
    heading === undefined ? [] : { heading, key },
  ),
];

/** A node request, for programs. */
export const requestFields: Fields<RequestRecord> = {
  id: [text, ({ id }) => id],
  state: [oneOf(requestStates), ({ state }) => state],
  since: [moment, ({ stateTime }) => isoOf(stateTime)],
  created: [moment, ({ createdTime }) => isoOf(createdTime)],
  labels: [texts, ({ nodeTypes }) => nodeTypes],
  nodes: [texts, ({ nodes }) => nodes],
  requestor: [maybe, ({ requestor }) => requestor],
  lease: [maybe, ({ requestor }) => leaseIdOf(requestor) ?? null],
  tenant: [maybe, ({ tenantName }) => tenantName],
  relative_priority: [number, ({ relativePriority }) => relativePriority],
  declined_by: [texts, ({ declinedBy }) => declinedBy],
  event_id: [maybe, ({ eventId }) => eventId],
};

/** Columns of `request-list`, with Nodepool's headings and keys. */
export const requestColumns: readonly Column[] = columns({
  "Request ID": "id",
  Priority: "relative_priority",
  State: "state",
  Requestor: "requestor",
  "Node Types": ["node_types", ({ labels }) => labels],
  Nodes: "nodes",
  "Declined By": "declined_by",
  "Event ID": "event_id",
});

/** A lease, for programs. */
export const leaseFields: Fields<Lease> = {
  id: [text, ({ id }) => id],
  state: [oneOf(leaseStates), ({ state }) => state],
  owner: [text, ({ owner }) => owner],
  labels: [texts, ({ labels }) => labels],
  request: [maybe, ({ request }) => request],
  nodes: [texts, ({ nodes }) => nodes],
  tenant: [maybe, ({ tenant }) => tenant],
  created: [moment, ({ created }) => iso(created)],
  expires: [
    about(moment, "when its nodes are returned, unless a heartbeat comes before"),
    ({ expires }) => iso(expires),
  ],
  // Of a lease without heartbeats that is its expiry.
  until: [about(moment, "when they are returned in any case"), ({ until, expires }) => iso(until ?? expires)],
  heartbeat_seconds: [
    (z) => z.number().nullable(),
    ({ heartbeat }) => (heartbeat === null ? null : heartbeat / 1_000),
  ],
  verdict: [(z) => z.enum(leaseVerdicts).nullable(), ({ verdict }) => verdict],
  job: [
    (z) =>
      z
        .object({ system: z.string(), id: z.string(), name: maybe(z), url: maybe(z) })
        .nullable()
        .describe("the job of a CI that it is for"),
    ({ job }) => job,
  ],
  data: [about(maybe, "the memory of its client"), ({ data }) => data],
  parts: [
    (z) =>
      z
        .array(z.object({ label: z.string(), state: z.enum(partStates), nodes: texts(z) }))
        .nullable()
        .describe(
          "of a mixed set: what is held, asked for now, or comes next; null: one pool serves all of it",
        ),
    ({ set }) => set && partRows(set),
  ],
  same: [
    (z) =>
      z
        .array(z.object({ fact: z.string(), labels: texts(z) }))
        .nullable()
        .describe("of a mixed set: the facts in which its nodes of these labels, or of all, agree"),
    ({ set }) => set?.same ?? null,
  ],
  why: [
    about(maybe, "why it has failed, where more is known than that all pools declined"),
    ({ why }) => why,
  ],
};

/** The column of the time that is left until the row's `expires`. */
export const timeLeft: NonNullable<Column["value"]> = ({ expires }, { now, ages }) =>
  ageIn(ages, ((msOf(expires) ?? 0) - now) / 1_000);

/** The table of `list --leases`. `--json` has the lists of labels and nodes whole. */
export const leaseColumns: readonly Column[] = [
  ...columns({ Lease: "id", State: "state", Owner: "owner" }),
  // A lease of a thousand nodes is one line that can be read.
  { heading: "Labels", key: "labels", show: ({ labels }) => labelsText(labels as readonly string[]) },
  ...columns({ Request: "request" }),
  { heading: "Nodes", key: "nodes", show: ({ nodes }) => some(nodes as readonly string[]) },
  ...columns({ "Time Left": ["time_left", timeLeft] }),
];

/** The table where one of the leases is for a job. */
export const leaseJobColumns: readonly Column[] = leaseColumns.toSpliced(5, 0, {
  heading: "Job",
  key: "job",
  show: ({ job }) => jobText(job as Lease["job"]),
});

/** What only `--json` shows of a lease. */
export const leaseJson = columns({ Expires: "expires", Age: ["age", ageOf("created")], Job: "job" });

/** Its id is what people look for: the CI shows it. */
function jobText(job: Lease["job"]): string {
  return job === null ? "" : `${job.system} ${job.id}`;
}

/** A few names whole; of many the first and the last. */
function some(names: readonly string[]): string {
  return names.length <= 5 ? names.join(",") : `${names[0]} ... ${names.at(-1)} (${names.length})`;
}

/** What a client needs to use a node, as `request --json` gives it, too. */
export const accessFields: Fields<NodeRecord> = {
  id: [text, ({ id }) => id],
  label: [texts, ({ type }) => type],
  provider: [maybe, ({ provider }) => provider],
  interface_ip: [maybe, ({ interfaceIp }) => interfaceIp],
  connection_type: [maybe, ({ connectionType }) => connectionType],
  // A port that is an object holds credentials of a cluster.
  connection_port: [
    (z) => z.int().nullable(),
    ({ connectionPort }) => (typeof connectionPort === "number" ? connectionPort : null),
  ],
  username: [maybe, ({ username }) => username],
  host_keys: [texts, ({ hostKeys }) => hostKeys],
};

/** A token, for programs: without the hash, which no client needs. */
export const tokenFields: Fields<Token> = {
  name: [text, ({ name }) => name],
  role: [oneOf(apiRoles), ({ role }) => role],
  labels: [texts, ({ labels }) => labels],
  tenants: [texts, ({ tenants }) => tenants],
  created: [moment, ({ created }) => iso(created)],
  created_by: [text, ({ createdBy }) => createdBy],
  expires: [moment, ({ expires }) => iso(expires)],
  revoked: [moment, ({ revoked }) => iso(revoked)],
  revoked_by: [maybe, ({ revokedBy }) => revokedBy],
};
