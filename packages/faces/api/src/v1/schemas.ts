import {
  apiRoles,
  imageBuildStates,
  imageUploadStates,
  leaseVerdicts,
  nodeStates,
  requestStates,
  standingKinds,
  standingStates,
} from "@nodeyard/model";
import { z } from "zod";

/**
 * The rows of the lists, as the document describes them. Keys are only added: clients ignore what they do not know. Replies are
 * not checked against them at run time.
 */
const text = z.string();
const maybe = text.nullable();
const texts = z.array(text);
/** ISO 8601, of the tree. */
export const moment = z.string().meta({ format: "date-time" }).nullable();
const anything = z
  .unknown()
  .meta({ description: "as the driver or the client wrote it; `redacted` for others" });
const counts = z.record(text, z.int());

export const nodeSchema = z.object({
  id: text,
  provider: maybe,
  pool: maybe,
  label: texts,
  state: z.enum(nodeStates),
  since: moment,
  locked: z.boolean(),
  allocated_to: maybe,
  tenant: maybe,
  server_id: anything,
  hostname: maybe,
  interface_ip: maybe,
  public_ipv4: maybe,
  private_ipv4: maybe,
  ipv6: maybe,
  az: maybe,
  connection_type: maybe,
  connection_port: z.union([z.int(), text]),
  username: maybe,
  host_keys: texts,
  launcher: maybe,
  hold_job: maybe,
  comment: maybe,
  user_data: anything,
  driver_data: anything,
  backing_node: maybe,
  slot: z.int().nullable(),
  dead_letter: z.boolean(),
  cost: z
    .object({ per_hour: z.number(), currency: text })
    .nullable()
    .describe("of its machine, as it was known when the node became ready; null: not known"),
  remark: z
    .object({ at: moment, text: maybe })
    .nullable()
    .describe(
      "what its driver last said of its machine, such as that the cloud takes it back; null: nothing",
    ),
});

export const requestSchema = z.object({
  id: text,
  state: z.enum(requestStates),
  since: moment,
  created: moment,
  labels: texts,
  nodes: texts,
  requestor: maybe,
  lease: maybe,
  tenant: maybe,
  relative_priority: z.number(),
  declined_by: texts,
  event_id: maybe,
});

export const leaseSchema = z.object({
  id: text,
  state: z.enum(["waiting", "granted", "failed", "released"]),
  owner: text,
  labels: texts,
  request: maybe,
  nodes: texts,
  tenant: maybe,
  created: moment,
  expires: moment.describe("when its nodes are returned, unless a heartbeat comes before"),
  until: moment.describe("when they are returned in any case"),
  heartbeat_seconds: z.number().nullable(),
  verdict: z.enum(leaseVerdicts).nullable(),
});

export const accessSchema = z.object({
  id: text,
  label: texts,
  provider: maybe,
  interface_ip: maybe,
  connection_type: maybe,
  connection_port: z.int().nullable(),
  username: maybe,
  host_keys: texts,
});

export const labelSchema = z.object({
  label: text,
  pools: texts,
  nodes: counts.describe("by state; for a user its own nodes, and ready nodes without an owner"),
  waiting: z.int().describe("requests that are not answered yet"),
});

export const poolSchema = z.object({
  id: text,
  provider: maybe,
  pool: maybe,
  launcher: text,
  state: text,
  labels: texts,
  priority: z.number(),
  paused: z.boolean(),
});

/** Amounts by resource: `instances`, `cores`, `ram` in MiB, and what else the provider counts. */
const use = z.record(
  text,
  z.object({
    limit: z.number().nullable().describe("null: there is none"),
    used: z.number().describe("by nodes of all launchers"),
    used_by_others: z.number().nullable(),
  }),
);

export const providerSchema = z.object({
  provider: text,
  pools: texts,
  launchers: texts,
  labels: texts,
  nodes: counts,
  breakers: z.array(
    z.object({ offering: text, failures: z.int(), why: text, opened: moment, until: moment }),
  ),
  standings: z
    .array(
      z.object({
        launcher: text,
        driver: text,
        quota: use.describe("what the cloud allows, by resource"),
        quota_read_at: moment,
        launching: z.number(),
        max_concurrency: z.number().nullable(),
        calls: z
          .object({ waiting: z.number(), free: z.number(), interval_ms: z.number() })
          .nullable()
          .describe("of the cloud's API, which wait for the rate limit, and how many more may"),
        pools: z.array(z.object({ pool: text, limits: use, waiting: z.int(), paused: z.boolean() })),
        errors: z
          .array(z.object({ at: moment, event: text, node: text, kind: maybe, error: text }))
          .describe("the last ones of launches and deletions since the launcher started"),
      }),
    )
    .describe("what launchers know of its use; how it stands is in /v1/standings"),
  unknown: texts.describe("launchers that serve it and did not say how it stands"),
});

const amounts = z.record(text, z.number());
/** A sliver of a machine, as its sliver manager reports it. */
const sliver = z.object({
  name: text,
  node: maybe.describe("null: it is no node of this installation"),
  use: z
    .enum(["busy", "idle", "free"])
    .describe("free: the part of the machine that no sliver has, while it is lent"),
  phase: text,
  doing: maybe,
  error: maybe,
  remarks: texts.describe("what explains how its jobs fare: kills for memory, a used up budget"),
  usage: amounts.describe("what it uses, since its start where it adds up"),
  guarantees: amounts,
  rspec: amounts.describe("in the sliver manager's names and units, as all below"),
  effective: amounts.describe("the rspec after loans"),
  loans: z.array(
    z.object({
      to: text,
      resource: text,
      amount: z.number(),
      refused: maybe.describe("null: it is in force"),
    }),
  ),
});
export const sliverMachinesSchema = z.object({
  items: z.array(
    z.object({
      id: text,
      provider: text,
      machine: text,
      error: maybe.describe("why nothing is known of it, or nothing is done to it"),
      capacity: amounts.describe("what it guarantees at most, named as in the provider's quota"),
      guaranteed: amounts,
      remarks: texts.describe("updates of its images that are tried, or how they ended"),
      slivers: z.array(sliver),
    }),
  ),
  unknown: z
    .array(z.object({ provider: text, why: text }))
    .describe("providers that may have such machines, too"),
});

export const imageSchema = z.object({
  image: text,
  paused: z.boolean(),
  build_requested: z.boolean(),
  builds: counts,
  uploaded_to: texts,
  uploading_to: texts,
});

const progress = z
  .object({
    phase: maybe,
    bytes: z.number(),
    total_bytes: z.number().nullable(),
    bytes_per_second: z.number(),
    elapsed_seconds: z.number(),
    eta_seconds: z.number().nullable(),
  })
  .nullable()
  .describe("of what goes on in the process that answers; null: nothing, or elsewhere");

const tally = z.object({
  boots: z.number(),
  failed: z.number(),
  logs: z.number().describe("sum of the logarithms of seconds"),
  squares: z.number().describe("sum of their squares"),
});
/** The record of a trial as it is: `nodeyard image-status` behind an address makes the same row of it as on the tree. */
export const canarySchema = z
  .object({
    candidate: maybe.describe("the build on trial"),
    since: z.number().nullable().describe("tree time, milliseconds"),
    share: z.number().describe("of launches, 0 to 1"),
    tallies: z.object({ candidate: tally, stable: tally }),
    rejected: texts.describe("builds that nothing is launched of any more"),
    last: z
      .looseObject({ build: text, verdict: text, why: text })
      .nullable()
      .describe("how the last one ended"),
  })
  .nullable()
  .describe("the trial of a new build; null: there was none");

export const findingSchema = z.object({
  severity: z.enum(["error", "warning"]),
  source: text,
  line: z.int(),
  column: z.int(),
  path: text,
  message: text,
});

export const buildSchema = z.object({
  id: text,
  image: text,
  builder: maybe,
  formats: texts,
  state: z.enum(imageBuildStates),
  since: moment,
  paused: z.boolean(),
  progress,
});

export const uploadSchema = z.object({
  id: text,
  image: text,
  build: text,
  provider: text,
  upload: text,
  external_name: maybe,
  external_id: anything,
  state: z.enum(imageUploadStates),
  since: moment,
  progress,
});

export const memberSchema = z.object({
  id: text,
  kind: text,
  hostname: text,
  state: text,
  version: maybe,
});

export const standingSchema = z.object({
  id: text,
  kind: z.enum(standingKinds),
  name: text,
  provider: maybe,
  standing: z
    .enum(standingStates)
    .describe("degraded: a part of it cannot be used, or not as it is configured; unknown: not tried yet"),
  since: moment,
  code: text.describe("why, for programs; never renamed"),
  meaning: text,
  cause: maybe.describe("the first line of the error of the far end"),
  next: text.describe("what happens next by itself"),
  next_try: moment,
  remedy: text.describe("what a person can do"),
  because: maybe.describe("id of the standing that this one follows from"),
  members: texts.describe("hosts of the launchers and builders that say so"),
});

export const tokenSchema = z.object({
  name: text,
  role: z.enum(apiRoles),
  labels: texts,
  tenants: texts,
  created: moment,
  created_by: text,
  expires: moment,
  revoked: moment,
  revoked_by: maybe,
});

export const auditSchema = z.object({
  id: text,
  at: moment,
  who: text,
  role: text,
  action: text,
  subject: text,
  why: maybe,
  status: z.int(),
});
