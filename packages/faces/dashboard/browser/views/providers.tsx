import { hrefOf } from "../data/route.ts";
import type { Provider, Use } from "../data/rows.ts";
import { hasSlivers, nodesByProvider, rows, versions } from "../data/state.ts";
import { Amounts } from "../ui/amounts.tsx";
import { isWrong, StandingLine } from "../ui/attention.tsx";
import { Facts } from "../ui/facts.tsx";
import { History } from "../ui/history.tsx";
import { Link, Problem, Section, State, StateBar, When } from "../ui/pieces.tsx";
import { limitOf, useProviders } from "../ui/use-providers.ts";

export function ProvidersView({ id }: { readonly id: string | undefined }) {
  const { data, error } = useProviders(id);
  return (
    <>
      <header>
        <h1>{id === undefined ? "Providers" : `Provider ${id}`}</h1>
      </header>
      <Problem error={error} />
      {data?.length === 0 && (
        <p class="dim">
          No launcher serves a provider: add one under <code>providers</code> in nodepool.yaml, and start{" "}
          <code>nodeyard launcher</code>.
        </p>
      )}
      {data?.map((provider) => (
        <Section
          key={provider.provider}
          title={id === undefined ? provider.provider : "Now"}
          aside={
            <a
              href={
                id === undefined
                  ? hrefOf("providers", provider.provider)
                  : hrefOf("nodes", undefined, { q: id })
              }
            >
              {id === undefined ? `More of ${provider.provider}` : "Its nodes"}
            </a>
          }
        >
          <ProviderCard provider={provider} whole={id !== undefined} />
        </Section>
      ))}
      {id !== undefined && <History of={{ provider: id }} />}
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
      <StateBar counts={nodesByProvider.of(name)} total={limitOf(provider)} />
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
          labels,
          images: rows("image").flatMap(({ image, uploaded_to: at }) => (at.includes(name) ? [image] : [])),
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
          <span aria-hidden="true">✕</span> <strong>{offering}</strong> is not launched: closed{" "}
          <When at={opened} />, after {failures} failures: {why}.
          {until !== null && (
            <>
              {" "}
              Next try <When at={until} />.
            </>
          )}
        </p>
      ))}
      {hasSlivers(name) && <a href={hrefOf("slivers", name)}>Its machines and their slivers</a>}
      {standings.map((standing) => (
        <UseOf
          key={standing.launcher}
          use={standing}
          errors={whole ? 20 : 3}
          isOne={standings.length === 1}
        />
      ))}
      {unknown.length > 0 && (
        <p class="dim">
          {whole ? "No answer about its use from" : "Its use is known to other launchers:"}{" "}
          {unknown.join(", ")}
        </p>
      )}
    </div>
  );
}

/** Keys of nodepool.yaml that limit a pool. */
const POOL_KEYS = { instances: "max-servers", cores: "max-cores", ram: "max-ram" };

function UseOf({
  use,
  errors,
  isOne,
}: {
  readonly use: Use;
  readonly errors: number;
  readonly isOne: boolean;
}) {
  const { launcher, driver, quota, launching, max_concurrency: most, calls, pools } = use;
  return (
    <div class="stack">
      {!isOne && <h3>What launcher {launcher} counts</h3>}
      <Amounts title="Used of what the provider allows" amounts={quota} />
      {pools.map(({ pool, limits }) => (
        <Amounts key={pool} title={`Used of the limits of pool ${pool}`} amounts={limits} names={POOL_KEYS} />
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
              <When at={at} />
              <Link view="nodes" id={node} />
              <span class="grow long problem">{error}</span>
            </li>
          ))}
        </ul>
      )}
      {isOne && (
        <details>
          <summary>Details</summary>
          <Facts facts={{ driver, launcher, quota_read: <When at={use.quota_read_at} /> }} />
        </details>
      )}
    </div>
  );
}
