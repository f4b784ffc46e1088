import { askTenants, iso, listTokens } from "@nodeyard/operations";
import {
  about,
  counts,
  type Fields,
  maybe,
  moment,
  rowOf,
  schemaOf,
  tenantFields,
  text,
  texts,
  tokenFields,
  whole,
} from "@nodeyard/operations/listing";
import type { View } from "@nodeyard/view";
import { z } from "zod";
import type { PastAudit } from "../known.ts";
import { type Collection, gather, routesOf } from "./collection.ts";
import { countStates, poolsIn } from "./counts.ts";
import { imageLists } from "./image-reads.ts";
import { KINDS, type Kind, rowIn } from "./kinds.ts";
import { type Principal, seesAll, seesLabel, seesTenant } from "./principal.ts";
import { ASK_CALLS, providers } from "./provider-reads.ts";
import { ADMINS, EVERYBODY, OPERATORS, READERS, type Route } from "./route.ts";

/** Of things of one kind. They come from the view: reading a list costs the tree nothing. */
function listOf(kind: Kind): Pick<Collection, "key" | "row" | "rows" | "one"> {
  const { fields, all, one, row } = KINDS[kind];
  return {
    key: "id",
    row: schemaOf(z, fields),
    rows: ({ known: { view }, principal }) => gather(all(view), ([, entry]) => row(entry, view, principal)),
    ...(one && { one: ({ known, principal }, id) => rowIn(known.view, kind, id, principal) }),
  };
}

const nodes: Collection = {
  ...listOf("node"),
  name: "nodes",
  about: "the nodes",
  roles: EVERYBODY,
  filters: ["id", "state", "provider", "pool", "label", "allocated_to", "tenant"],
};

/** A user sees the requests of its tenants only; those of no tenant are for callers without a limit. */
const requests: Collection = {
  ...listOf("request"),
  name: "requests",
  about: "the node requests that are not answered yet, of Zuul and of everyone else",
  roles: EVERYBODY,
  filters: ["id", "state", "labels", "requestor", "tenant"],
};

/** Leases that cannot be read are left out, since nobody's right to see them is known. */
const leases: Collection = {
  ...listOf("lease"),
  name: "leases",
  about: "the leases",
  roles: EVERYBODY,
  filters: ["id", "state", "owner", "labels", "tenant", "job.system", "job.id"],
};

/** A label, and who asks: counts are of what the caller sees, so two callers may get other numbers for one label. */
const labelFields: Fields<{
  readonly label: string;
  readonly pools: Iterable<string>;
  readonly view: View;
  readonly principal: Principal;
}> = {
  label: [text, ({ label }) => label],
  pools: [texts, ({ pools }) => [...pools].sort()],
  nodes: [
    about(counts, "by state; for a user its own nodes, and ready nodes without an owner"),
    ({ label, view, principal }) => countStates(view, view.nodes.byLabel.get(label), principal),
  ],
  waiting: [
    about(whole, "requests that are not answered yet"),
    ({ label, view, principal }) => waitingFor(view, label, principal),
  ],
};

const labels: Collection = {
  name: "labels",
  about: "the labels that pools offer",
  roles: EVERYBODY,
  row: schemaOf(z, labelFields),
  key: "label",
  filters: ["label", "pools"],
  rows: ({ known: { view }, principal }) => {
    const pools = new Map<string, Set<string>>();
    for (const { record } of poolsIn(view))
      for (const label of record.supportedLabels)
        if (seesLabel(principal, label))
          pools.set(label, (pools.get(label) ?? new Set()).add(`${record.providerName}/${record.name}`));
    return [...pools].map(([label, names]) => rowOf(labelFields, { label, pools: names, view, principal }));
  },
};

/** Requests for a label that are not answered yet, as far as the caller sees their tenants. */
function waitingFor({ requests }: View, label: string, principal: Principal): number {
  let count = 0;
  // By the index of states: all others are answered.
  for (const state of ["requested", "pending"])
    for (const id of requests.byState.get(state)) {
      const record = requests.byId.get(id)?.record;
      if (record?.nodeTypes.includes(label) === true && seesTenant(principal, record.tenantName)) count++;
    }
  return count;
}

/** A pool that two launchers serve has two rows: they may differ in labels and priority. */
const pools: Collection = {
  ...listOf("pool"),
  name: "pools",
  about: "the pools that launchers serve, each as often as launchers do",
  roles: READERS,
  filters: ["provider", "pool", "launcher", "labels", "state"],
};

/** Processes of Nodepool, too, as far as they register. */
const members: Collection = {
  ...listOf("member"),
  name: "members",
  about: "the launchers and builders that run",
  roles: READERS,
  filters: ["kind", "hostname", "state"],
};

/** One for each thing that members report or the tree has: what lists, pages, metrics and commands show. */
const standings: Collection = {
  ...listOf("standing"),
  name: "standings",
  about: "how each provider, host, label, image, launcher, builder and sliver machine stands, and why",
  roles: READERS,
  filters: ["id", "kind", "provider", "standing", "code"],
};

/** Sums of builds and uploads; the lists of these have the single ones. */
const images: Collection = {
  ...listOf("image"),
  name: "images",
  about: "the diskimages that the tree knows",
  roles: READERS,
  key: "image",
  filters: ["image"],
};

/** Read from the tree, as a token that was made a moment ago must be there. Never with the hash. */
const tokens: Collection = {
  name: "tokens",
  about: "the tokens of clients, those included that have ended",
  roles: ADMINS,
  row: schemaOf(z, tokenFields),
  key: "name",
  filters: ["name", "role"],
  rows: async ({ known }) => {
    const { items } = await listTokens(known.handles);
    return items.map((token) => rowOf(tokenFields, token));
  },
};

/** As a launcher counts: they are no records of their own. */
const tenants: Collection = {
  name: "tenants",
  about: "the tenants and their clients: what they have, wait for and have spent; asked of a launcher",
  roles: READERS,
  row: schemaOf(z, tenantFields),
  key: "id",
  filters: ["tenant", "client"],
  rows: async (call) => {
    const { parts, known, principal } = call;
    // Numbers of all tenants, as those of providers.
    if (!seesAll(principal)) return [];
    const own = parts.sources.tenants?.();
    if (own === undefined) call.charge(ASK_CALLS);
    const uses = own ?? (await askTenants(known.handles)) ?? [];
    return uses.map((one) => rowOf(tenantFields, one));
  },
};

/** A change that was noted, and its place among those of its process. */
const auditFields: Fields<PastAudit & { readonly index: number }> = {
  // In the order of time, also as text.
  id: [text, ({ at, index }) => `${String(at).padStart(15, "0")}.${String(index).padStart(6, "0")}`],
  at: [moment, ({ at }) => iso(at)],
  who: [text, ({ who }) => who],
  role: [text, ({ role }) => role],
  action: [text, ({ action }) => action],
  subject: [text, ({ subject }) => subject],
  why: [maybe, ({ why }) => why],
  status: [whole, ({ status }) => status],
};

/** Each launcher notes the calls that it was asked by, and all that run note what commands on the tree changed. */
const audit: Collection = {
  name: "audit",
  about:
    "the calls of this process and the commands by which somebody changed something, refused ones included",
  roles: OPERATORS,
  row: schemaOf(z, auditFields),
  key: "id",
  filters: ["who", "action", "subject", "role"],
  rows: async ({ parts }) => {
    const past = (await parts.sources.audit()?.read()) ?? [];
    return past.map((entry, index) => rowOf(auditFields, { ...entry, index }));
  },
};

/** Lists and single items, made from the view in memory. */
export const readRoutes: readonly Route[] = [
  ...[nodes, requests, leases, labels, pools, providers, standings, tenants],
  images,
  ...imageLists,
  ...[members, tokens, audit],
].flatMap(routesOf);
