import { list } from "../data/api.ts";
import { hrefOf } from "../data/route.ts";
import { nodesByProvider, rows, versions } from "../data/state.ts";
import { Age, Facts, Problem, Section, State, StateBar } from "../ui/pieces.tsx";
import { useChange, useLoad } from "../ui/use.ts";

interface Provider {
  readonly provider: string;
  readonly pools: readonly string[];
  readonly launchers: readonly string[];
  readonly labels: readonly string[];
  readonly breakers: readonly Breaker[];
}

interface Breaker {
  readonly offering: string;
  readonly failures: number;
  readonly why: string;
  readonly opened: string | null;
  readonly until: string | null;
}

/** No event tells of breakers: they are looked up again this long after nodes changed. Milliseconds. */
const SETTLED_MS = 3_000;

export function ProvidersView({ id }: { readonly id: string | undefined }) {
  const { data, error, reload } = useLoad("providers", () => list<Provider>("/v1/providers"));
  useChange(versions.pool.value, 300, reload);
  useChange(Math.floor(versions.node.value / 50), SETTLED_MS, reload);
  const shown = data?.filter(({ provider }) => id === undefined || provider === id) ?? [];
  return (
    <>
      <header>
        <h1>{id === undefined ? "Providers" : `Provider ${id}`}</h1>
        {id !== undefined && <a href={hrefOf("nodes", undefined, { q: id })}>Its nodes</a>}
      </header>
      <Problem error={error} />
      {data !== undefined && shown.length === 0 && <p class="dim">No launcher serves such a provider.</p>}
      {shown.map((provider) => (
        <Section key={provider.provider} title={provider.provider}>
          <ProviderCard provider={provider} />
        </Section>
      ))}
    </>
  );
}

function ProviderCard({
  provider: { provider, pools, launchers, labels, breakers },
}: {
  readonly provider: Provider;
}) {
  void versions.node.value;
  const served = rows("pool").filter((pool) => pool.provider === provider);
  return (
    <>
      <StateBar counts={nodesByProvider.of(provider)} />
      <Facts
        facts={{
          nodes:
            [...nodesByProvider.of(provider)].map(([state, count]) => `${count} ${state}`).join(", ") ||
            "none",
          pools: served.length === 0 && pools.join(", "),
          launchers,
          labels: (
            <span class="ids">
              {labels.map((label) => (
                <a key={label} href={hrefOf("labels", label)}>
                  {label}
                </a>
              ))}
            </span>
          ),
        }}
      />
      <ul class="lines">
        {served.map(({ id, pool, launcher, state, paused }) => (
          <li key={id}>
            <State state={paused ? "paused" : state} />
            <span class="grow">pool {pool}</span>
            <span class="dim">{launcher}</span>
          </li>
        ))}
      </ul>
      {breakers.map(({ offering, failures, why, opened, until }) => (
        <p key={offering} class="problem">
          <span aria-hidden="true">✕</span> <strong>{offering}</strong> is not launched: {failures} failures
          in a row, {why}
          {". "}
          For <Age at={opened} />
          {until !== null && (
            <>
              , next try in <Age at={until} ahead />
            </>
          )}
        </p>
      ))}
    </>
  );
}
