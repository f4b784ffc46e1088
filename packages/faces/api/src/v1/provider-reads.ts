import { sliverMachine } from "@nodeyard/driver";
import { BREAKERS, decodeFailures, failureKey, readable, subjectOf } from "@nodeyard/model";
import { askProvider, iso, type LauncherUse } from "@nodeyard/operations";
import {
  about,
  counts,
  type Fields,
  maybe,
  moment,
  number,
  type Row,
  rowOf,
  schemaOf,
  text,
  texts,
} from "@nodeyard/operations/listing";
import type { View } from "@nodeyard/view";
import { z } from "zod";
import { type Collection, demandKnown, unscoped } from "./collection.ts";
import { countStates, poolsIn } from "./counts.ts";
import { type Principal, seesAll } from "./principal.ts";
import { type Call, READERS, type Route, route } from "./route.ts";

/** Amounts by resource: `instances`, `cores`, `ram` in MiB, and what else the provider counts. */
const amountsInUse = z.record(
  z.string(),
  z.object({
    limit: z.number().nullable().describe("null: there is none"),
    used: z.number().describe("by nodes of all launchers"),
    used_by_others: z.number().nullable(),
  }),
);

/** What one launcher says of its use of a provider, for programs. */
const useFields: Fields<LauncherUse> = {
  launcher: [text, ({ launcher }) => launcher],
  driver: [text, ({ driver }) => driver],
  quota: [
    () => amountsInUse.describe("what the cloud allows, by resource"),
    ({ limits, used, quota }) => use(limits, used, quota),
  ],
  quota_read_at: [moment, ({ readAt }) => iso(readAt)],
  launching: [number, ({ launching }) => launching],
  max_concurrency: [() => z.number().nullable(), ({ maxConcurrency }) => maxConcurrency],
  calls: [
    () =>
      z
        .object({ waiting: z.number(), free: z.number(), interval_ms: z.number() })
        .nullable()
        .describe("of the cloud's API, which wait for the rate limit, and how many more may"),
    ({ pace }) =>
      pace === undefined ? null : { waiting: pace.waiting, free: pace.free, interval_ms: pace.intervalMs },
  ],
  pools: [
    () =>
      z.array(z.object({ pool: z.string(), limits: amountsInUse, waiting: z.int(), paused: z.boolean() })),
    ({ pools }) =>
      pools.map(({ name: pool, limits, used, waiting, paused }) => ({
        pool,
        limits: use(limits, used),
        waiting,
        paused,
      })),
  ],
  errors: [
    () =>
      z
        .array(
          z.object({ at: moment(z), event: z.string(), node: z.string(), kind: maybe(z), error: z.string() }),
        )
        .describe("the last ones of launches and deletions since the launcher started"),
    ({ errors }) => errors.map(({ at, ...error }) => ({ at: iso(at), ...error })),
  ],
};

/** A provider, for whom, and what launchers say of it. */
interface Provider {
  readonly name: string;
  readonly view: View;
  readonly principal: Principal;
  readonly uses: readonly LauncherUse[];
}

/** A provider, for programs. */
const providerFields: Fields<Provider> = {
  provider: [text, ({ name }) => name],
  pools: [texts, (one) => unique(poolsOf(one).map(({ name }) => name ?? ""))],
  launchers: [texts, launchersOf],
  labels: [texts, (one) => unique(poolsOf(one).flatMap(({ supportedLabels }) => supportedLabels))],
  nodes: [
    counts,
    ({ name, view, principal }) => countStates(view, view.nodes.byProvider.get(name), principal),
  ],
  breakers: [
    () =>
      z.array(
        z.object({
          ...{ offering: z.string(), failures: z.int(), why: z.string() },
          ...{ opened: moment(z), until: moment(z) },
        }),
      ),
    ({ name, view }) => [...breakersOf(view, name)],
  ],
  standings: [
    () =>
      z
        .array(schemaOf(z, useFields))
        .describe("what launchers know of its use; how it stands is in /v1/standings"),
    ({ uses }) => uses.map((one) => rowOf(useFields, one)),
  ],
  unknown: [
    about(texts, "launchers that serve it and did not say how it stands"),
    (one) => launchersOf(one).filter((host) => !one.uses.some(({ launcher }) => launcher === host)),
  ],
};

function poolsOf({ name, view }: Provider) {
  return poolsIn(view).flatMap(({ record }) => (record.providerName === name ? record : []));
}

function launchersOf(one: Provider): readonly string[] {
  return unique(poolsOf(one).map(({ hostname }) => hostname));
}

/** What a question to all launchers costs, in calls: it writes to the tree. */
export const ASK_CALLS = 10;

/** The list takes what this process knows; one provider is worth a question to all launchers. */
export const providers: Collection = {
  name: "providers",
  about:
    "the providers that launchers are configured with or that nodes or uploads belong to; the list has the standings of this process, and one has those of all launchers, which are asked",
  roles: READERS,
  row: schemaOf(z, providerFields),
  key: "provider",
  filters: ["provider", "launchers", "labels"],
  rows: (call) =>
    unscoped(call, () => {
      const standings = call.parts.sources.providers();
      return allProviders(call).map((name) => {
        const uses = standings.filter((one) => one.name === name);
        return rowOf(providerFields, { name, view: call.known.view, principal: call.principal, uses });
      });
    }),
  one: async ({ known: { view, handles }, principal, charge }, name) => {
    if (!seesAll(principal)) return undefined;
    charge(ASK_CALLS);
    const uses = await askProvider(handles, name);
    // A provider whose launchers have just started may have no record yet.
    const isKnown = uses.length > 0 || providerNames(view).includes(name);
    return isKnown ? rowOf(providerFields, { name, view, principal, uses }) : undefined;
  },
};

const sliverMachinesSchema = z.object({
  items: z.array(
    z
      .object({ id: z.string(), provider: z.string(), machine: z.string() })
      .extend(sliverMachine.omit({ name: true, faults: true }).shape),
  ),
  unknown: z
    .array(z.object({ provider: z.string(), why: z.string() }))
    .describe("providers that may have such machines, too"),
});

/** Answers of machines that cost as much as a call. */
const MACHINES_PER_CALL = 10;

const sliverMachines = route({
  id: "list_sliver_machines",
  method: "GET",
  path: "/v1/sliver-machines",
  summary:
    "The machines of which nodes are slivers: what they guarantee, to whom, and who lends what; each is asked now",
  roles: READERS,
  query: z.strictObject({
    provider: z.string().max(1_000).optional().describe("of this provider alone"),
  }),
  status: 200,
  reply: sliverMachinesSchema,
  handle: async (call) => {
    const { principal, parts, known, query } = call;
    if (!seesAll(principal)) return { items: [], unknown: [] };
    const facts = known.view.standings.list().filter(({ kind }) => kind === "sliver-machine");
    const reported = unique(facts.flatMap(({ provider }) => provider ?? []));
    if (query.provider !== undefined)
      demandKnown("provider", query.provider, new Set([...allProviders(call), ...reported]));
    const wanted = ({ provider }: { provider: string }) => (query.provider ?? provider) === provider;
    const asked = (await parts.sources.sliverMachines()).filter(wanted);
    call.charge(Math.ceil(asked.reduce((sum, { machines }) => sum + machines.length, 0) / MACHINES_PER_CALL));
    // Machines are asked by the launcher that serves them; answers of others could be larger than a znode can be.
    const ours = new Set(parts.sources.providers().map(({ name }) => name));
    const others = reported.map((provider) => ({ provider }));
    return {
      items: asked.flatMap(({ provider, machines }) =>
        // Its faults are among its remarks, and a standing of their own.
        machines.map(({ name, faults: _, ...shown }) => ({
          ...{ id: `${provider}/${name}`, provider, machine: name },
          ...shown,
        })),
      ),
      unknown: [
        ...asked.flatMap(({ provider, error }) => (error === null ? [] : [{ provider, why: error }])),
        ...others
          .filter((one) => wanted(one) && !ours.has(one.provider))
          .map(({ provider }) => ({ provider, why: "this process does not serve it; ask one that does" })),
      ],
    };
  },
});

export const providerRoutes: readonly Route[] = [sliverMachines];

/** Also providers of the configuration for which nothing is in the tree yet. */
function allProviders({ parts, known: { view } }: Call): readonly string[] {
  return unique([...providerNames(view), ...parts.sources.providers().map(({ name }) => name)]);
}

/** Of all providers that are registered, or that a node or an upload belongs to. */
function providerNames(view: View): readonly string[] {
  const served = poolsIn(view).map(({ record }) => record.providerName ?? "");
  const uploads = [...view.images.names()].flatMap((name) => [...view.images.uploads(name)]);
  const uploadedTo = uploads.map(({ provider }) => provider);
  return unique([...served, ...view.nodes.byProvider.keys(), ...uploadedTo]).filter((name) => name !== "");
}

type Amounts = Readonly<Record<string, number>>;

/**
 * Use by resource, in its unit. `left`: the limits less what others use, as the cloud reports it; without it they count as using
 * nothing.
 */
function use(limits: Amounts, used: Amounts, left = limits): Row {
  const names = unique([...Object.keys(limits), ...Object.keys(used)]);
  return Object.fromEntries(
    names.map((name) => {
      const limit = limits[name];
      const by_others = limit === undefined ? null : limit - (left[name] ?? limit);
      return [name, { limit: limit ?? null, used: used[name] ?? 0, used_by_others: by_others }];
    }),
  );
}

/** Offerings of a provider that are not launched for a while, as the shared records have them. Unreadable records are left out. */
function* breakersOf(view: View, provider: string): Generator<Row> {
  for (const { path, data } of view.own.values()) {
    const key = path.startsWith(`${BREAKERS}/`) ? failureKey(path) : undefined;
    const subject = key === undefined || path !== `${BREAKERS}/${key}` ? undefined : subjectOf(key);
    if (subject?.scope !== "offering" || subject.provider !== provider) continue;
    const record = readable(() => decodeFailures(key!, data));
    if (record === undefined) continue;
    yield {
      offering: [subject.az, subject.type].filter((part) => part !== null).join(" "),
      failures: Math.round(record.failures),
      why: record.error,
      opened: iso(record.since),
      until: iso(record.pause?.until ?? null),
    };
  }
}

/** Sorted, too. */
function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}
