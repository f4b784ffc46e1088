import { span } from "@nodeyard/client/steps";
import type { Explanation } from "@nodeyard/operations";
import type { ComponentChildren } from "preact";
import { call } from "../data/api.ts";
import { msOf } from "../data/format.ts";
import type { Kind } from "../data/rows.ts";
import { row } from "../data/state.ts";
import { Facts, Name, Prose } from "./facts.tsx";
import { Console, Events, Lines, Waterfall } from "./past.tsx";
import { Age, Problem, Section, State, When } from "./pieces.tsx";
import { useChange, useLoad } from "./use.ts";

type FactsOf = Readonly<Record<string, unknown>>;
type PoolSays = Explanation["pools"][number];
type Estimate = NonNullable<Explanation["estimate"]>;

const LIVE: ReadonlySet<string> = new Set<Kind>(["request", "lease", "node", "image"]);
/** Milliseconds to wait after a change: the event of a record arrives before the launcher has noted the change for `explain`. */
const SETTLED_MS = 700;
/** What `explain` knows and the stream of events does not. The rest of what it says of a record is folded. */
const MORE = "lease cost remarks hosts providers_not_served failed_because waits_for_requests".split(" ");

interface Subject {
  readonly kind: Explanation["kind"];
  readonly id: string;
  /** What the view shows of the record; undefined: the record is gone or has no row, and all that `explain` knows of it is shown. */
  readonly facts?: FactsOf | undefined;
  readonly children?: ComponentChildren;
}

/** How something is, why it waits, what happened, and what happens next, from `explain`. Loaded again whenever the record changes. */
export function Story({ kind, id, facts, children }: Subject) {
  const path = `/v1/explain/${kind}/${encodeURIComponent(id)}`;
  const { data, error, loading, reload } = useLoad(path, () => call<Explanation>("GET", path));
  const live = LIVE.has(kind) ? (row(kind as Kind, id) as Partial<Explanation> | undefined) : undefined;
  useChange(live, SETTLED_MS, reload);
  const { state, since } = { ...data, ...live };
  // A wait from before its state changed is not why it is as it is.
  const story = data !== undefined && data.state === state ? data : undefined;
  const wait = story?.waits_for;
  const isSame = (pool: PoolSays) =>
    pool.code === wait?.code && JSON.stringify(pool.facts) === JSON.stringify(wait.facts);
  const deciding = data?.pools.find(isSame);
  const others = data?.pools.filter((pool) => pool !== deciding && pool.outlook !== "lacks") ?? [];
  const known = Object.entries({
    ...(facts ?? data?.about),
    ...Object.fromEntries(MORE.map((key) => [key, data?.about[key]])),
  }).filter(([key, value]) => value !== wait?.facts[key]);
  const again = (
    <button type="button" class="small" onClick={reload} disabled={loading}>
      Ask again
    </button>
  );
  return (
    <>
      <Section title="Now" aside={again}>
        <div class="stack">
          {state !== undefined && (
            <p>
              <State state={state} /> {since != null && <Age at={since} />}
            </p>
          )}
          {data === undefined && error === undefined && <p class="dim">Asking all launchers…</p>}
          <Problem error={error} />
          {story !== undefined && <Why story={story} since={since} deciding={deciding} />}
          {data !== undefined && live === undefined && LIVE.has(kind) && kind !== "image" && (
            <p class="dim">There is no such {kind} now; this is what is known of it.</p>
          )}
          <Facts facts={Object.fromEntries(known)} />
          {children}
          {data !== undefined && facts !== undefined && (
            <details>
              <summary>Details</summary>
              <Facts facts={{ reason: wait?.code, ...data.about }} />
            </details>
          )}
        </div>
      </Section>
      {others.length > 0 && (
        <Section title={deciding === undefined ? "What each pool says" : "What other pools say"}>
          <ul class="cards">
            {others.map((pool) => (
              <li key={`${pool.member} ${pool.pool}`}>
                <h3>
                  <Name name="pool" text={pool.pool} />
                </h3>
                <p>{pool.meaning ?? pool.code}</p>
                <PoolText pool={pool} />
                <Facts facts={{ ...pool.facts, pool: null }} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {data !== undefined && data.steps.length > 0 && (
        <Section title="Time line">
          <Waterfall steps={data.steps} />
        </Section>
      )}
      {data !== undefined && (
        <>
          <Console events={data.events} />
          <Events of={id} events={data.events} problem={data.journal.problem} now={wait?.code} />
        </>
      )}
    </>
  );
}

function Why({
  story: { waits_for: wait, next, estimate, pools, members },
  since,
  deciding,
}: {
  readonly story: Explanation;
  readonly since: string | null | undefined;
  readonly deciding: PoolSays | undefined;
}) {
  const lacking = pools.filter(({ outlook }) => outlook === "lacks").length;
  return (
    <div class="why">
      {wait !== null && (
        <>
          <p>
            <strong>It waits: {wait.meaning ?? wait.code}</strong>{" "}
            {Math.abs(msOf(wait.since) - msOf(since)) > 1_000 && <Age at={wait.since} />}
          </p>
          <Facts facts={{ ...wait.facts, last_lines: null }} />
          <Lines of="Last lines of the log" lines={wait.facts.last_lines} />
        </>
      )}
      {deciding !== undefined && <PoolText pool={deciding} />}
      <p>
        Next: <Prose text={next} />
        {wait?.next_try != null && (
          <>
            {" "}
            Next try: <When at={wait.next_try} />.
          </>
        )}
      </p>
      {estimate !== null && deciding?.estimate === null && (
        <p>
          Estimate: {estimateText(estimate)}, by {estimate.pool}.
        </p>
      )}
      {lacking > 0 && (
        <p class="dim">
          {lacking} other {lacking === 1 ? "pool does" : "pools do"} not offer what it wants.
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

function PoolText({ pool: { outlook, position, waiting, ...pool } }: { readonly pool: PoolSays }) {
  const texts = [
    outlook,
    position !== null && `position ${position} of ${waiting}`,
    pool.estimate !== null && `estimate: ${estimateText(pool.estimate)}`,
    pool.no_estimate !== null && `no estimate: ${pool.no_estimate}`,
  ];
  return <p class="dim">{texts.filter(Boolean).join(", ")}</p>;
}
