import { call, list } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { clockText } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { Provider, Use } from "../data/rows.ts";
import { nodesByProvider, rows, versions } from "../data/state.ts";
import { Amounts } from "../ui/amounts.tsx";
import { isWrong, StandingLine } from "../ui/attention.tsx";
import { History } from "../ui/history.tsx";
import { Age, Facts, Problem, Section, State, StateBar } from "../ui/pieces.tsx";
import { useChange, useLoad } from "../ui/use.ts";

/** Milliseconds after which quotas and breakers are read again when some nodes have changed. They cause no events of their own. */
const SETTLED_MS = 3_000;
const SOME_CHANGES = 20;

export function ProvidersView({ id }: { readonly id: string | undefined }) {
  const { data, error, reload } = useLoad(`providers ${id}`, async () =>
    id === undefined
      ? list<Provider>("/v1/providers")
      : [await call<Provider>("GET", `/v1/providers/${encodeURIComponent(id)}`)],
  );
  useChange(versions.pool.value, 300, reload);
  useChange(Math.floor(versions.node.value / SOME_CHANGES), SETTLED_MS, reload);
  return (
    <>
      <header>
        <h1>{id === undefined ? "Providers" : `Provider ${id}`}</h1>
        {id !== undefined && <a href={hrefOf("nodes", undefined, { q: id })}>Its nodes</a>}
      </header>
      <Problem error={error} />
      {data?.length === 0 && <p class="dim">No launcher serves a provider.</p>}
      {id !== undefined && <History of={{ provider: id }} />}
      {data?.map((provider) => (
        <Section
          key={provider.provider}
          title={provider.provider}
          aside={
            id === undefined && (
              <a href={hrefOf("providers", provider.provider)}>More of {provider.provider}</a>
            )
          }
        >
          <ProviderCard provider={provider} whole={id !== undefined} />
        </Section>
      ))}
    </>
  );
}

function ProviderCard({ provider, whole }: { readonly provider: Provider; readonly whole: boolean }) {
  void versions.node.value;
  const { provider: name, labels, breakers, standings, unknown } = provider;
  const served = rows("pool").filter((pool) => pool.provider === name);
  // Labels have pages of their own.
  const wrong = rows("standing").filter(
    (one) => one.provider === name && one.kind !== "label" && isWrong(one),
  );
  return (
    <div class="stack">
      <StateBar counts={nodesByProvider.of(name)} />
      {wrong.length > 0 && (
        <ul class="lines" aria-label="Needs attention">
          {wrong.map((row) => (
            <li key={row.id}>
              <StandingLine row={row} />
            </li>
          ))}
        </ul>
      )}
      <Facts
        facts={{
          nodes:
            [...nodesByProvider.of(name)].map(([state, count]) => `${count} ${state}`).join(", ") || "none",
          labels: (
            <span class="ids">
              {labels.map((label) => (
                <a key={label} href={hrefOf("labels", label)}>
                  {label}
                </a>
              ))}
            </span>
          ),
          pools: (
            <span class="ids">
              {served.map(({ id, pool, state, paused }) => (
                <span key={id}>
                  {pool} <State state={paused ? "paused" : state} />
                </span>
              ))}
            </span>
          ),
        }}
      />
      {breakers.map(({ offering, failures, why, opened, until }) => (
        <p key={offering} class="problem">
          <span aria-hidden="true">✕</span> <strong>{offering}</strong> is not launched since{" "}
          <Age at={opened} />, after {failures} failures: {why}.
          {until !== null && (
            <>
              {" "}
              Next try in <Age at={until} ahead />.
            </>
          )}
        </p>
      ))}
      {standings.map((standing) => (
        <UseOf key={standing.launcher} use={standing} errors={whole ? 20 : 3} />
      ))}
      {unknown.length > 0 && (
        <p class="dim">
          {whole ? "Did not say how it stands" : "Known to others"}: {unknown.join(", ")}
        </p>
      )}
    </div>
  );
}

function UseOf({ use, errors }: { readonly use: Use; readonly errors: number }) {
  const { launcher, driver, quota, launching, max_concurrency: most, calls, pools } = use;
  return (
    <div class="stack">
      <h3>
        {driver} <span class="dim">as {launcher} sees it</span>
      </h3>
      <Amounts title="Quota of the cloud" amounts={quota} />
      {pools.map(({ pool, limits }) => (
        <Amounts key={pool} title={`Limits of pool ${pool}`} amounts={limits} />
      ))}
      <Facts
        facts={{
          launching:
            launching > 0 && (most === null || most < 0 ? launching : `${launching} of ${most} at once`),
          calls_that_wait: calls !== null && calls.waiting > 0 ? calls.waiting : null,
          requests_that_wait: pools.reduce((sum, { waiting }) => sum + waiting, 0) || null,
        }}
      />
      {use.errors.length > 0 && (
        <ul class="lines" aria-label="Last errors">
          {use.errors.slice(-errors).map(({ at, node, error }) => (
            <li key={`${at} ${node} ${error}`}>
              <span class="dim">{at === null ? "" : clockText(at, now.peek())}</span>
              <a class="id" href={hrefOf("nodes", node)}>
                {node}
              </a>
              <span class="grow problem">{error}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
