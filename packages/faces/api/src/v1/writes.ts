import { createHash } from "node:crypto";
import { ANY, apiRoles, type Lease, leaseVerdicts } from "@nodeyard/model";
import {
  askForNodesOnce,
  createToken,
  deleteNode,
  endHold,
  forgetNode,
  holdNode,
  keepLease,
  releaseLease,
  retireNode,
  revokeToken,
} from "@nodeyard/operations";
import { accessFields, leaseFields, nodeFields, rowOf, schemaOf } from "@nodeyard/operations/listing";
import { defined, hexId } from "@nodeyard/runtime";
import { z } from "zod";
import { leaseIn, rowIn } from "./kinds.ts";
import { mayChange, type Principal, seesLabel, seesTenant } from "./principal.ts";
import { ApiError, notFound } from "./problems.ts";
import { ADMINS, type Call, EVERYBODY, LEASERS, OPERATORS, type Route, route } from "./route.ts";

/** The longest time that a lease, a hold or a token may be made for: more is a mistake in the unit. */
const YEAR_SECONDS = 365 * 86_400;
const name = z.string().min(1).max(255);
const seconds = z.int().min(1).max(YEAR_SECONDS);
const why = z.string().max(1_000).describe("for the audit, and for people");
const leaseId = z.object({ id: z.string().regex(/^[0-9a-f]{12}$/) });
const job = z
  .strictObject({
    system: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,31}$/)
      .describe("the kind of CI, such as github"),
    id: name.describe("as the CI names it; `nodeyard explain` finds the lease by it"),
    name: name.nullable().default(null),
    url: z
      .url({ protocol: /^https?$/ })
      .max(2_048)
      .nullable()
      .default(null)
      .describe("its page"),
  })
  .optional()
  .describe("the job of a CI that the lease is for");
const data = z
  .string()
  .max(4_096)
  .optional()
  .describe("the memory of the client, for its successor; everybody who sees the lease sees it");
const nodeId = z.object({ id: z.string().regex(/^[0-9]{10}$/) });
const leaseSchema = schemaOf(z, leaseFields);

/**
 * A call without `Idempotency-Key` whose reply is lost leaves a lease that nobody knows; it ends at its expiry. With a key the
 * client repeats the call.
 */
const createLease = route({
  id: "create_lease",
  method: "POST",
  path: "/v1/leases",
  summary: "Request nodes, all together or not at all; they are kept until the lease is released or expires",
  roles: LEASERS,
  keyed: true,
  body: z.strictObject({
    labels: z.array(name).min(1).max(1_000).describe("one for each node"),
    for_seconds: seconds.default(3_600).describe("how long the nodes may be kept, waiting included"),
    heartbeat_seconds: z
      .int()
      .min(5)
      .max(86_400)
      .optional()
      .describe("the lease ends when no heartbeat comes for so long; without it none is needed"),
    priority: z
      .string()
      .regex(/^[0-9]{3}$/)
      .default("200")
      .describe("100 is served before 200"),
    tenant: name.optional().describe("whose limits count; needed where the token is for several"),
    project: name.optional().describe("what the job is about; labels may have caches for each"),
    branch: name.optional(),
    job,
    data,
    same: z
      .array(z.strictObject({ fact: name, labels: z.array(name).max(100).default([]) }))
      .max(20)
      .optional()
      .describe(
        "makes it a mixed set: each label may come from a pool of its own, and nodes of these labels, or of all, agree in each fact (`zone`, `provider`, or one of `node-attributes`); [] for no rule",
      ),
  }),
  status: 201,
  reply: leaseSchema,
  handle: async ({ principal, body, key, known: { handles } }) => {
    const denied = body.labels.find((label) => !seesLabel(principal, label));
    if (denied !== undefined)
      throw new ApiError(403, "api.forbidden", `${principal.name} may not request ${JSON.stringify(denied)}`);
    const tenant = tenantFor(principal, body.tenant);
    // Without a key a repeated call makes another lease: a client that wants to repeat sends one.
    const id = key === undefined ? hexId(handles.random).slice(0, 12) : leaseIdFor(principal, key);
    const { lease } = await askForNodesOnce(handles, id, {
      labels: body.labels,
      owner: principal.name,
      forMs: body.for_seconds * 1_000,
      priority: body.priority,
      ...(body.heartbeat_seconds === undefined ? {} : { heartbeatMs: body.heartbeat_seconds * 1_000 }),
      ...defined({
        tenant,
        ...{ job: body.job, data: body.data, project: body.project, branch: body.branch, same: body.same },
      }),
    });
    return rowOf(leaseFields, lease);
  },
});

/**
 * The same key of the same client leads to the same lease, whichever process is asked: nothing else has to remember it. 48 bits,
 * as of all leases; the name is part of it, so that no client can meet another one's lease.
 */
function leaseIdFor({ name }: Principal, key: string): string {
  return createHash("sha256")
    .update(JSON.stringify([name, key]))
    .digest("hex")
    .slice(0, 12);
}

/**
 * The tenant of a new lease: the one that is named, or a user's only one; undefined: none. Throws ApiError where the caller may
 * not use it, or must choose.
 */
function tenantFor(principal: Principal, wanted: string | undefined): string | undefined {
  const [only, ...others] = principal.tenants;
  const tenant = wanted ?? (others.length === 0 && only !== ANY ? only : undefined);
  if (seesTenant(principal, tenant ?? null)) return tenant;
  const why =
    tenant === undefined ? "must name a tenant" : `may not use the tenant ${JSON.stringify(tenant)}`;
  throw new ApiError(403, "api.forbidden", `${principal.name} ${why}`);
}

/** A lease that the caller may change. Throws ApiError: 404 where it may not even see it, 403 where it may only see it. */
function ownLease({ principal, known, params }: Call<{ readonly id: string }>): Lease {
  const lease = leaseIn(known.view, params.id, principal);
  if (lease === undefined) throw notFound(`lease ${params.id}`);
  if (!mayChange(principal, lease))
    throw new ApiError(403, "api.forbidden", `lease ${params.id} belongs to ${lease.owner}`);
  return lease;
}

/** Making, keeping and giving back leases. Launchers decide which nodes they are. */
const leaseRoutes: readonly Route[] = [
  createLease,
  route({
    id: "list_lease_nodes",
    method: "GET",
    path: "/v1/leases/{id}/nodes",
    summary: "How to reach the nodes of a lease, in the order of its labels; none before it is granted",
    roles: EVERYBODY,
    params: leaseId,
    status: 200,
    reply: z.object({ items: z.array(schemaOf(z, accessFields)) }),
    handle: async ({ params, principal, known: { view } }) => {
      const lease = leaseIn(view, params.id, principal);
      if (lease === undefined) throw notFound(`lease ${params.id}`);
      // A node that has gone since is left out.
      const records = lease.nodes.map((id) => view.nodes.byId.get(id)?.record);
      return {
        items: records.filter((record) => record !== undefined).map((record) => rowOf(accessFields, record)),
      };
    },
  }),
  route({
    id: "heartbeat_lease",
    method: "POST",
    path: "/v1/leases/{id}/heartbeat",
    summary: "Say that the client of a lease lives",
    roles: LEASERS,
    params: leaseId,
    body: z
      .strictObject({
        job,
        data,
        data_was: z
          .string()
          .max(4_096)
          .optional()
          .describe("the data that its client knows; when it is another by now, nothing changes (409)"),
      })
      .optional(),
    status: 200,
    reply: leaseSchema,
    handle: async (call) => {
      // Rejects with LeaseError, answered with 409, when the lease has ended, and its nodes are lost, or its data is another.
      const { id } = ownLease(call);
      const { data_was: dataWas, ...noted } = call.body ?? {};
      return rowOf(leaseFields, await keepLease(call.known.handles, id, defined({ ...noted, dataWas })));
    },
  }),
  route({
    id: "extend_lease",
    method: "POST",
    path: "/v1/leases/{id}/extend",
    summary: "Keep the nodes of a lease for so long from now",
    roles: LEASERS,
    params: leaseId,
    body: z.strictObject({ for_seconds: seconds, why: why.optional() }),
    status: 200,
    reply: leaseSchema,
    handle: async (call) => {
      const { id } = ownLease(call);
      return rowOf(
        leaseFields,
        await keepLease(call.known.handles, id, { forMs: call.body.for_seconds * 1_000 }),
      );
    },
  }),
  route({
    id: "release_lease",
    method: "POST",
    path: "/v1/leases/{id}/release",
    summary: "Give the nodes of a lease back, with a verdict on them; twice is the same as once",
    roles: LEASERS,
    params: leaseId,
    body: z.strictObject({
      verdict: z.enum(leaseVerdicts).default("ok"),
      commit: z
        .boolean()
        .default(false)
        .describe("the job ended well: what it leaves in caches of its nodes serves later jobs"),
      why: why.optional(),
    }),
    status: 204,
    handle: async (call) => {
      const { id } = ownLease(call);
      // The first verdict counts: a lease that is released already is not written again.
      await releaseLease(call.known.handles, id, call.body);
    },
  }),
];

/** The node after a change, from the view, which may not have the change yet; not found when a launcher has deleted it in between. */
function changedNode({ known, principal, params }: Call<{ readonly id: string }>) {
  const row = rowIn(known.view, "node", params.id, principal);
  if (row === undefined) throw notFound(`node ${params.id}`);
  return row;
}

/** What an operator does to single nodes. A state that does not allow it, or a lock that another client has, is answered with 409. */
const nodeRoutes: readonly Route[] = [
  route({
    id: "hold_node",
    method: "POST",
    path: "/v1/nodes/{id}/hold",
    summary: "Keep a node for a person to look at; no request gets it",
    roles: OPERATORS,
    params: nodeId,
    body: z.strictObject({
      why: why.min(1),
      for_seconds: seconds.optional().describe("without it, as long as the configuration allows"),
    }),
    status: 200,
    reply: schemaOf(z, nodeFields),
    handle: async (call) => {
      // 0: no limit of its own.
      const { why: comment, for_seconds: forSeconds = 0 } = call.body;
      await holdNode(call.known.handles, call.params.id, { comment, forSeconds });
      return changedNode(call);
    },
  }),
  route({
    id: "release_node",
    method: "POST",
    path: "/v1/nodes/{id}/release",
    summary: "End the hold of a node: it is deleted, or if it is a static host offered again",
    roles: OPERATORS,
    params: nodeId,
    status: 204,
    handle: async ({ params, known }) => endHold(known.handles, params.id),
  }),
  route({
    id: "delete_node",
    method: "DELETE",
    path: "/v1/nodes/{id}",
    summary: "Mark a node for deletion; a launcher that serves its provider deletes it",
    roles: OPERATORS,
    params: nodeId,
    query: z.strictObject({
      now: z
        .enum(["true", "false"])
        .optional()
        .describe(
          "true: what could not be deleted in many tries is tried again at once; twice is the same as once",
        ),
    }),
    status: 204,
    handle: async ({ params, query, known: { handles } }) =>
      deleteNode(handles, params.id, query.now === "true"),
  }),
  route({
    id: "forget_node",
    method: "POST",
    path: "/v1/nodes/{id}/forget",
    summary:
      "Remove the record of a node whose provider no launcher serves, or that could not be deleted in many tries; its machine may run on",
    roles: OPERATORS,
    params: nodeId,
    status: 200,
    reply: z.object({
      provider: z.string().nullable(),
      server_id: z.string().nullable().describe("of the machine, as its cloud has it"),
      place: z.string().describe("where the machine is, in words of its cloud"),
    }),
    handle: async ({ params, known }) => forgetNode(known.handles, params.id),
  }),
  route({
    id: "retire_node",
    method: "POST",
    path: "/v1/nodes/{id}/retire",
    summary: "Retire the backing node that a node has its slot on, or the node itself: it gets no new slots",
    roles: OPERATORS,
    params: nodeId,
    body: z.strictObject({ why: why.default("retired by hand") }),
    status: 200,
    reply: z.object({ backing_node: z.string() }),
    handle: async ({ params, body, known: { handles } }) => ({
      backing_node: await retireNode(handles, params.id, body.why),
    }),
  }),
];

const tokenName = z.object({ name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/) });

const tokenRoutes: readonly Route[] = [
  route({
    id: "create_token",
    method: "POST",
    path: "/v1/tokens",
    summary: "Make a token; its text is shown once",
    roles: ADMINS,
    body: z.strictObject({
      ...tokenName.shape,
      role: z.enum(apiRoles),
      labels: z.array(name).max(1_000).optional(),
      tenants: z.array(name).max(1_000).optional(),
      for_seconds: seconds.default(90 * 86_400),
      why: why.optional(),
    }),
    status: 201,
    reply: z.object({ name: z.string(), token: z.string(), expires: z.string() }),
    handle: async ({ body, principal, known }) => {
      const unless = body.role === "user" ? [] : [ANY];
      const { text, token } = await createToken(known.handles, {
        name: body.name,
        role: body.role,
        labels: body.labels ?? unless,
        tenants: body.tenants ?? unless,
        forMs: body.for_seconds * 1_000,
        by: principal.name,
      });
      return { name: token.name, token: text, expires: new Date(token.expires).toISOString() };
    },
  }),
  route({
    id: "revoke_token",
    method: "DELETE",
    path: "/v1/tokens/{name}",
    summary: "End a token at once, in every process",
    roles: ADMINS,
    params: tokenName,
    status: 204,
    handle: async ({ params, principal, known }) =>
      void (await revokeToken(known.handles, params.name, principal.name)),
  }),
];

/** Everything that changes something: records that the command line writes, too. */
export const writeRoutes: readonly Route[] = [...leaseRoutes, ...nodeRoutes, ...tokenRoutes];
