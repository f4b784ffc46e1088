import { call } from "../data/api.ts";
import { amountText, resourceText } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { Machines } from "../data/rows.ts";
import { versions } from "../data/state.ts";
import { part } from "../ui/amounts.tsx";
import { Problem, Section } from "../ui/pieces.tsx";
import { useChange, useLoad } from "../ui/use.ts";

type Machine = Machines["items"][number];
type Sliver = Machine["slivers"][number];

/** Milliseconds after which machines are asked again when many nodes have changed. Each read asks every machine. */
const SETTLED_MS = 5_000;
const SOME_CHANGES = 50;

export function SliversView() {
  const { data, error, loading, reload } = useLoad("slivers", () =>
    call<Machines>("GET", "/v1/sliver-machines"),
  );
  useChange(Math.floor(versions.node.value / SOME_CHANGES), SETTLED_MS, reload);
  return (
    <>
      <header>
        <h1>
          Sliver machines <span class="count">{data?.items.length}</span>
        </h1>
        <button type="button" onClick={reload} disabled={loading}>
          Ask again
        </button>
      </header>
      <Problem error={error} />
      {data?.items.length === 0 && (
        <p class="dim">No provider that this process serves has machines of slivers.</p>
      )}
      {data?.items.map((machine) => (
        <Section
          key={machine.id}
          title={machine.id}
          aside={<a href={hrefOf("providers", machine.provider)}>Provider</a>}
        >
          <MachineCard machine={machine} />
        </Section>
      ))}
      {data?.unknown.map(({ provider, why }) => (
        <p key={provider} class="dim">
          {provider}: {why}
        </p>
      ))}
    </>
  );
}

/** Tones of slivers in the picture. They repeat when there are more slivers. */
const TONES = ["busy", "good", "work", "wait", "held"];

function MachineCard({ machine: { error, capacity, guaranteed, slivers } }: { readonly machine: Machine }) {
  const named = slivers.filter(({ use }) => use !== "free");
  const toneOf = (name: string) =>
    TONES[named.findIndex((one) => one.name === name) % TONES.length] ?? "quiet";
  return (
    <div class="stack">
      <Problem error={error ?? undefined} />
      <ul class="amounts">
        {Object.entries(capacity).map(([resource, whole]) => (
          <li key={resource}>
            <span>{resourceText(resource)}</span>
            <span class="bar tall" aria-hidden="true">
              {named.map(({ name, use, guarantees }) => (
                <span
                  key={name}
                  class={`${toneOf(name)} ${use}`}
                  style={{ width: part(guarantees[resource] ?? 0, whole) }}
                  title={`${name}: ${amountText(resource, guarantees[resource] ?? 0)}`}
                />
              ))}
            </span>
            <span>
              {amountText(resource, guaranteed[resource] ?? 0)} of {amountText(resource, whole)}
            </span>
          </li>
        ))}
      </ul>
      <ul class="cards">
        {slivers.map((sliver) => (
          <SliverLine key={sliver.name} sliver={sliver} tone={toneOf(sliver.name)} />
        ))}
      </ul>
    </div>
  );
}

const USES = { busy: "▲ busy", idle: "○ idle", free: "◇ not given out" } as const;

function SliverLine({ sliver, tone }: { readonly sliver: Sliver; readonly tone: string }) {
  const { name, node, use, phase, doing, error, rspec, effective, loans } = sliver;
  const amounts = Object.entries(effective).map(([resource, amount]) => {
    const own = rspec[resource] ?? 0;
    const text = (one: number) => amountText(resource, one);
    const moved = `${amount > own ? "borrowed" : "lent"} ${text(Math.abs(amount - own))}`;
    return `${resourceText(resource)} ${text(amount)}${amount === own ? "" : ` (${text(own)} and ${moved})`}`;
  });
  return (
    <li>
      <p>
        <span class={`tone ${tone}`} aria-hidden="true">
          ▇
        </span>{" "}
        <strong>{use === "free" ? "Free part" : name}</strong> {USES[use]}
        {node !== null && (
          <>
            {" "}
            <a class="id" href={hrefOf("nodes", node)}>
              {node}
            </a>
          </>
        )}{" "}
        <span class="dim">{[use === "free" ? "" : phase, doing].filter(Boolean).join(", ")}</span>
      </p>
      {amounts.length > 0 && <p class="dim">{amounts.join(", ")}</p>}
      {loans.map(({ to, resource, amount, refused }) => (
        <p key={`${to} ${resource}`} class={refused === null ? "" : "dim"}>
          ⤷ lends {amountText(resource, amount)} ({resourceText(resource)}) to {to}
          {refused !== null && `: refused, ${refused}`}
        </p>
      ))}
      <Problem error={error ?? undefined} />
    </li>
  );
}
