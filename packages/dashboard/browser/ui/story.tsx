import { bars, type Step, span, took } from "@nodeyard/client/steps";
import { call } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { clockText, factText, msOf } from "../data/format.ts";
import type { Kind } from "../data/rows.ts";
import { row } from "../data/state.ts";
import { Age, Facts, Problem, Section, State } from "./pieces.tsx";
import { useChange, useLoad } from "./use.ts";

type FactsOf = Readonly<Record<string, unknown>>;

interface Reason {
  readonly code: string;
  readonly meaning: string | null;
  readonly facts: FactsOf;
  readonly since?: string | null;
  readonly next_try: string | null;
}

interface Estimate {
  readonly pool: string;
  readonly likely_seconds: number;
  readonly from_seconds: number;
  readonly to_seconds: number;
  readonly launches: number;
  readonly uses: number;
}

interface PoolSays extends Reason {
  readonly pool: string;
  readonly member: string;
  readonly outlook: string;
  readonly position: number | null;
  readonly waiting: number;
  readonly estimate: Estimate | null;
  readonly no_estimate: string | null;
}

interface PastEvent {
  readonly at: string | null;
  readonly event: string;
  readonly meaning: string | null;
  readonly node: string | null;
  readonly by: string | null;
  readonly facts: FactsOf;
}

/** Answer of `GET /v1/explain/{kind}/{id}`, the same as `nodeyard explain --json` prints. */
interface Explanation {
  readonly kind: string;
  readonly id: string;
  readonly state: string;
  readonly since: string | null;
  readonly about: FactsOf;
  readonly waits_for: Reason | null;
  readonly next: string;
  readonly estimate: Estimate | null;
  readonly pools: readonly PoolSays[];
  readonly steps: readonly Step[];
  readonly events: readonly PastEvent[];
  readonly journal: { readonly problem: string | null };
  readonly members: { readonly silent: readonly { readonly member: string; readonly why: string }[] };
}

export type ExplainedKind = "request" | "lease" | "node" | "label" | "image";
const LIVE: ReadonlySet<string> = new Set<Kind>(["request", "lease", "node", "image"]);
/** Milliseconds to wait after a change: the event of a record arrives before the launcher has noted the change for `explain`. */
const SETTLED_MS = 700;

interface Subject {
  readonly kind: ExplainedKind;
  readonly id: string;
  /** Whether the record is shown here, because the view does not show it. */
  readonly about: boolean;
}

/** Why something waits, what happened, and what happens next, from `explain`. Loaded again whenever the record changes. */
export function Story({ kind, id, about }: Subject) {
  const path = `/v1/explain/${kind}/${encodeURIComponent(id)}`;
  const { data, error, loading, reload } = useLoad(path, () => call<Explanation>("GET", path));
  useChange(LIVE.has(kind) ? row(kind as Kind, id) : undefined, SETTLED_MS, reload);
  if (data === undefined)
    return error === undefined ? <p class="dim">Asking all launchers…</p> : <Problem error={error} />;
  const again = (
    <button type="button" class="small" onClick={reload} disabled={loading}>
      Ask again
    </button>
  );
  return (
    <>
      <Problem error={error} />
      <Section title="Why" aside={again}>
        <Why story={data} />
      </Section>
      {data.pools.length > 0 && (
        <Section title="What each pool says">
          <Pools pools={data.pools} />
        </Section>
      )}
      {data.steps.length > 0 && (
        <Section title="Time line">
          <Waterfall steps={data.steps} />
        </Section>
      )}
      <Console events={data.events} />
      {kind !== "label" && kind !== "image" && (
        <Section title="What happened">
          <Events events={data.events} problem={data.journal.problem} />
        </Section>
      )}
      {about && (
        <Section title="Record">
          <Facts facts={data.about} />
        </Section>
      )}
    </>
  );
}

function Why({
  story: { state, since, waits_for: wait, next, estimate, members },
}: {
  readonly story: Explanation;
}) {
  return (
    <div class="why">
      <p>
        <State state={state} />
        {since !== null && (
          <span class="dim">
            {" "}
            for <Age at={since} />
          </span>
        )}
      </p>
      {wait !== null && (
        <>
          <p>
            <strong>It waits: {wait.meaning ?? wait.code}</strong>
            {wait.since != null && (
              <span class="dim">
                {" "}
                for <Age at={wait.since} />
              </span>
            )}{" "}
            <code class="dim">{wait.code}</code>
          </p>
          <Facts facts={wait.facts} />
        </>
      )}
      <p>
        Next: {next}
        {wait?.next_try != null && nextTry(wait.next_try)}
      </p>
      {estimate !== null && (
        <p>
          Estimate: {estimateText(estimate)}, by {estimate.pool}.
        </p>
      )}
      {members.silent.map(({ member, why }) => (
        <p key={member} class="problem">
          <span aria-hidden="true">✕</span> {member} did not answer ({why}): what only it knows is missing
          here.
        </p>
      ))}
    </div>
  );
}

function nextTry(at: string): string {
  return msOf(at) <= now.value ? " Next try: now." : ` Next try: in ${span((msOf(at) - now.value) / 1_000)}.`;
}

function estimateText({
  likely_seconds: likely,
  from_seconds: from,
  to_seconds: to,
  launches,
  uses,
}: Estimate): string {
  const range = from === to ? "" : `${span(from)} to ${span(to)}, `;
  return `in ${span(likely)} (${range}from ${launches} launches and ${uses} uses seen lately)`;
}

function Pools({ pools }: { readonly pools: readonly PoolSays[] }) {
  const concerned = pools.filter(({ outlook }) => outlook !== "lacks");
  const lacking = pools.length - concerned.length;
  return (
    <>
      <ul class="cards">
        {concerned.map((pool) => (
          <li key={`${pool.member} ${pool.pool}`}>
            <h3>{pool.pool}</h3>
            <p>
              {pool.meaning ?? "a reason that this release does not know"}{" "}
              <code class="dim">{pool.code}</code>
            </p>
            <p class="dim">
              {pool.outlook}
              {pool.position !== null && `, position ${pool.position} of ${pool.waiting}`}
              {pool.estimate !== null && `, estimate: ${estimateText(pool.estimate)}`}
              {pool.no_estimate !== null && `, no estimate: ${pool.no_estimate}`}
            </p>
            <Facts facts={pool.facts} />
          </li>
        ))}
      </ul>
      {lacking > 0 && (
        <p class="dim">
          {lacking} other {lacking === 1 ? "pool does" : "pools do"} not offer what it wants.
        </p>
      )}
    </>
  );
}

export function Waterfall({ steps }: { readonly steps: readonly Step[] }) {
  // Updated every second, but only while a step is under way.
  const at = steps.some(({ seconds }) => seconds === null) ? now.value : 0;
  return (
    <ol class="waterfall">
      {bars(steps, at).map(({ step, name, seconds, place }, index) => (
        <li key={`${step.node} ${step.began} ${name} ${index}`} class={step.error !== null ? "failed" : ""}>
          <span class="name">{name}</span>
          <span class="track" aria-hidden="true">
            {place && (
              <span
                class={step.error !== null ? "bad" : step.seconds === null ? "work" : "done"}
                style={{ left: `${place.from * 100}%`, width: `max(3px, ${(place.to - place.from) * 100}%)` }}
              />
            )}
          </span>
          <span class="took">
            {took(seconds)}
            {step.seconds === null && "…"}
          </span>
          {step.error !== null && <span class="error">failed: {step.error}</span>}
        </li>
      ))}
    </ol>
  );
}

/** Console output that a driver read from a machine that did not boot. */
function Console({ events }: { readonly events: readonly PastEvent[] }) {
  const shown = events.filter(({ facts }) => facts.lines != null);
  if (shown.length === 0) return null;
  return (
    <Section title="Console">
      {shown.map(({ at, facts }) => {
        const lines = facts.lines;
        return (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
          <pre key={at} class="console" tabIndex={0}>
            {Array.isArray(lines) ? lines.join("\n") : String(lines)}
          </pre>
        );
      })}
    </Section>
  );
}

function Events({
  events,
  problem,
}: {
  readonly events: readonly PastEvent[];
  readonly problem: string | null;
}) {
  // Steps are shown on the time line.
  const shown = events.filter(({ event }) => event !== "node.step");
  return (
    <>
      {shown.length === 0 && <p class="dim">Nothing is known.</p>}
      <ol class="events">
        {shown.map(({ at, event, meaning, node, facts }, index) => (
          <li key={`${at} ${event} ${index}`}>
            <time dateTime={at ?? ""} title={at ?? ""}>
              {at === null ? "" : clockText(at, now.peek())}
            </time>
            <span>
              {meaning ?? event} <span class="dim">{factRow(node, facts)}</span>
            </span>
          </li>
        ))}
      </ol>
      {problem !== null && <p class="dim">There may be more: {problem}.</p>}
    </>
  );
}

const UNSAID = new Set(["asked", "code", "since", "nextTry", "lines", "request"]);

function factRow(node: string | null, { facts: inner, ...outer }: FactsOf): string {
  const all = { node, ...outer, ...(typeof inner === "object" ? inner : {}) };
  return Object.entries(all)
    .filter(([key, value]) => !UNSAID.has(key) && factText(value) !== "")
    .map(([key, value]) => `${key.replaceAll("_", " ")} ${factText(value)}`)
    .join(", ");
}
