import { HISTORY_STEP_MS } from "@nodeyard/metrics";
import { apiRoles } from "@nodeyard/model";
import { explain, iso, queryMembers, type Story, toExplanation } from "@nodeyard/operations";
import { moment } from "@nodeyard/operations/listing";
import { noHistory } from "@nodeyard/telemetry";
import { z } from "zod";
import { REDACTED } from "../redacted.ts";
import { KINDS, leaseIn, rowIn } from "./kinds.ts";
import { type Principal, seesAll, seesLabel, seesSecrets } from "./principal.ts";
import { ApiError, notFound } from "./problems.ts";
import { type Call, EVERYBODY, OPERATORS, READERS, type Route, route } from "./route.ts";

/** Kinds of subjects, as `nodeyard explain` has them. */
const kinds = ["request", "lease", "job", "node", "label", "image"] as const;

/** Asks each launcher through the tree, and waits for its answer for three seconds at most. */
const explainRoute = route({
  id: "explain",
  method: "GET",
  path: "/v1/explain/{kind}/{id}",
  summary:
    "What something waits for, since when, what happened so far, and what happens next; asks all launchers",
  roles: EVERYBODY,
  params: z.object({ kind: z.enum(kinds), id: z.string().regex(/^[^\s]{1,255}$/) }),
  status: 200,
  reply: z
    .looseObject({
      v: z.literal(1),
      kind: z.enum(kinds),
      id: z.string(),
      state: z.string(),
      next: z.string(),
      waits_for: z.looseObject({ code: z.string(), meaning: z.string() }).nullable(),
      pools: z.array(z.looseObject({ pool: z.string(), code: z.string() })),
      events: z.array(z.looseObject({ at: z.string().nullable(), event: z.string() })),
    })
    .describe("as `nodeyard explain --json` prints it"),
  handle: async (call) => {
    const { kind, id } = call.params;
    // The same answer for what does not exist and for what the caller may not see: ids must not be found out by trying.
    const missing = notFound(`${kind} ${JSON.stringify(id)}`);
    // Only a CI has ids with a slash; every other id is part of a path of the tree.
    if (!maySee(call) || (kind !== "job" && id.includes("/"))) throw missing;
    const { handles } = call.known;
    // Each launcher reads its own journal, this one too.
    const query = queryMembers(handles, () => noHistory("asked of launchers only"));
    const own = kind === "job" ? lastLease(call) : undefined;
    const story = await explain(
      handles,
      own === undefined ? { kind, id } : { kind: "lease", id: own },
      query,
    );
    if (story === undefined) throw missing;
    return toExplanation(shownTo(story, call.principal), "");
  },
});

type Asked = Call<{ readonly kind: (typeof kinds)[number]; readonly id: string }>;

/** The youngest lease for a job that the caller may see: several CIs may give one number to jobs of theirs. */
function lastLease({ principal, params: { id }, known: { view } }: Asked): string | undefined {
  const seen = [...KINDS.lease.all(view)].flatMap(([lease]) => leaseIn(view, lease, principal) ?? []);
  return seen
    .filter(({ job }) => job?.id === id)
    .sort((a, b) => a.created - b.created)
    .at(-1)?.id;
}

/** Only callers that see everything may look up things that have ended, because their owner is not known any more. */
function maySee(call: Asked) {
  const {
    principal,
    params: { kind, id },
    known: { view },
  } = call;
  if (seesAll(principal)) return true;
  if (kind === "label") return seesLabel(principal, id);
  return kind === "job" ? lastLease(call) !== undefined : rowIn(view, kind, id, principal) !== undefined;
}

/** The parts of a story that the caller may see: only its own things, and the same fields as in the lists. */
export function shownTo(story: Story, principal: Principal): Story {
  const known = seesSecrets(principal) ? story : withoutWords(story);
  if (seesAll(principal)) return known;
  // The counts of a label include all tenants; the list of labels has the caller's counts.
  if (story.kind === "label") {
    const { offered_by, pools_without_it } = story.about;
    return { ...known, about: { offered_by, pools_without_it }, history: { ...known.history, events: [] } };
  }
  // Journals hold events of all tenants; one without a request belongs to a node that the caller may see.
  const ours = new Set<unknown>([story.about.request, story.about.allocated_to, story.id]);
  const events = known.history.events.filter(({ request }) => request === null || ours.has(request));
  return { ...known, history: { ...known.history, events } };
}

/** The story for a viewer: without comments of people and lines of consoles. */
function withoutWords(story: Story): Story {
  const hidden = (facts: Story["about"], key: string) =>
    facts[key] == null ? facts : { ...facts, [key]: REDACTED };
  const { about, waits_for, history } = story;
  return {
    ...story,
    about: hidden(about, "comment"),
    waits_for: waits_for && { ...waits_for, facts: hidden(waits_for.facts, "comment") },
    // The last lines of a console, which may show what a machine was started with.
    history: {
      ...history,
      events: history.events.map((event) => ({ ...event, facts: hidden(event.facts, "lines") })),
    },
  };
}

/** For a client that wants to know whether its token works, and what for. */
const whoAmI = route({
  id: "who_am_i",
  method: "GET",
  path: "/v1/me",
  summary: "Who the caller is, and what it may do",
  roles: EVERYBODY,
  status: 200,
  reply: z.object({
    name: z.string(),
    role: z.enum(apiRoles),
    labels: z.array(z.string()),
    tenants: z.array(z.string()),
  }),
  handle: async ({ principal: { name, role, labels, tenants } }) => ({
    name,
    role,
    labels: [...labels],
    tenants: [...tenants],
  }),
});

const findingSchema = z.object({
  severity: z.enum(["error", "warning"]),
  source: z.string(),
  line: z.int(),
  column: z.int(),
  path: z.string(),
  message: z.string(),
});

/** Nothing is put into force, and no file that the text names is looked at. */
const checkConfig = route({
  id: "check_config",
  method: "POST",
  path: "/v1/config/check",
  summary:
    "Check a configuration as `nodeyard config-validate` does; environment variables are not filled in",
  roles: OPERATORS,
  body: z.strictObject({ text: z.string().describe("YAML, as in nodepool.yaml") }),
  status: 200,
  reply: z.object({ valid: z.boolean(), findings: z.array(findingSchema) }),
  handle: async ({ body, parts }) => {
    const findings = await parts.sources.checkConfig(body.text);
    return {
      valid: !findings.some(({ severity }) => severity === "error"),
      findings: findings.map(({ file: _, ...finding }) => finding),
    };
  },
});

/** What a play of the demand came to, for one provider and label; nodes, cores and RAM are the most at once. */
const waitFigures = z.object({
  requests: z.int(),
  wait_median: z.number().nullable().describe("of served requests, seconds"),
  wait_p95: z.number().nullable(),
  refused: z.int(),
  unanswered: z.int(),
});
const figures = waitFigures.extend({
  peak_nodes: z.number(),
  peak_cores: z.number(),
  peak_ram: z.number().describe("MiB"),
  idle_hours: z.number().describe("node hours that nodes were ready and nobody's"),
  cost: z.number().describe("in the currency of the prices; of nodes without a known price, nothing"),
});
/** Requests that are named in the answer; their number is exact. */
const MOST_LOST = 100;
/** A plan costs as much as so many calls, and there is one at a time. */
const PLAN_CALLS = 50;

/** The text is checked first: a plan with a configuration that no launcher would load says nothing. */
const planConfig = route({
  id: "plan_config",
  method: "POST",
  path: "/v1/config/plan",
  summary:
    "What a configuration would do with the requests of the last days, as `nodeyard plan` plays them; bounded in time, memory and requests",
  roles: OPERATORS,
  body: z.strictObject({
    text: z.string().describe("YAML, as in nodepool.yaml; environment variables are not filled in"),
    days: z.number().positive().max(31).default(7).describe("before the last request"),
  }),
  status: 200,
  reply: z.object({
    valid: z.boolean().describe("false: there is an error among the findings, and nothing was played"),
    findings: z.array(findingSchema),
    requests: z.int().describe("that were played"),
    rows: z.array(
      z.object({
        provider: z.string().nullable(),
        label: z.string().nullable(),
        today: figures,
        planned: figures,
      }),
    ),
    tenants: z.array(
      z.object({
        tenant: z.string().nullable().describe("null: requests without one"),
        today: waitFigures,
        planned: waitFigures,
      }),
    ),
    lost: z
      .array(z.string())
      .describe(`requests that only today's configuration serves: ${MOST_LOST} at most`),
    lost_count: z.int(),
    assumed: z.array(z.string()).describe("what the journal lacks, and what was taken instead"),
  }),
  handle: async (call) => {
    const { body, parts } = call;
    const findings = (await parts.sources.checkConfig(body.text)).map(({ file: _, ...finding }) => finding);
    const none = {
      valid: true,
      findings,
      requests: 0,
      rows: [],
      tenants: [],
      lost: [],
      lost_count: 0,
      assumed: [],
    };
    if (findings.some(({ severity }) => severity === "error")) return { ...none, valid: false };
    call.charge(PLAN_CALLS);
    const plan = await parts.sources.planConfig(body.text, body.days);
    // One at a time: a plan may take half a GiB and a core for most of a minute.
    if (plan === "busy") throw new ApiError(429, "api.too_fast", "another plan is being made: try again", 10);
    if (plan === undefined)
      throw new ApiError(503, "api.no_journal", "this process keeps no journal: call a launcher");
    if ("problem" in plan) throw new ApiError(400, "api.no_plan", plan.problem);
    return { ...none, ...plan, lost: plan.lost.slice(0, MOST_LOST), lost_count: plan.lost.length };
  },
});

const name = z.string().min(1).max(1_000).optional();

/** Noted by this launcher in memory: the answer reads neither the tree nor the journal. */
const history = route({
  id: "get_history",
  method: "GET",
  path: "/v1/history",
  summary: "How many nodes and waiting requests there were within the last day, every five minutes",
  roles: READERS,
  query: z
    .strictObject({ label: name, provider: name })
    .refine(
      ({ label, provider }) => label === undefined || provider === undefined,
      "give a label or a provider, or neither for everything",
    ),
  status: 200,
  reply: z.object({
    step_seconds: z.int(),
    points: z
      .array(
        z.object({
          at: moment(z),
          nodes: z.record(z.string(), z.int()).describe("by state; what there is none of is left out"),
          waiting: z
            .int()
            .nullable()
            .describe("requests that are not answered yet; null: a provider has none of its own"),
        }),
      )
      .describe("oldest first; a point is missing where this launcher did not run"),
  }),
  handle: async ({ principal, parts, query: { label, provider } }) => ({
    step_seconds: HISTORY_STEP_MS / 1_000,
    // Only callers that see all tenants get sums over all tenants.
    points: (seesAll(principal) ? parts.sources.history() : []).map(
      ({ at, nodes, waiting, labels, providers }) => {
        if (provider !== undefined) return { at: iso(at), nodes: providers[provider] ?? {}, waiting: null };
        if (label === undefined) return { at: iso(at), nodes, waiting };
        const { waiting: ofLabel = 0, ...states } = labels[label] ?? {};
        return { at: iso(at), nodes: states, waiting: ofLabel };
      },
    ),
  }),
});

/** Routes that belong to no list. */
export const otherRoutes: readonly Route[] = [whoAmI, explainRoute, history, checkConfig, planConfig];
