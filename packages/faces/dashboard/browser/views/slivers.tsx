import { amountText, resourceText } from "@nodeyard/client/amounts";
import { call } from "../data/api.ts";
import { hrefOf } from "../data/route.ts";
import type { Machines } from "../data/rows.ts";
import { row, versions } from "../data/state.ts";
import { part } from "../ui/amounts.tsx";
import { Link, Problem, Section, State, toneOf } from "../ui/pieces.tsx";
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
        <p class="dim">
          No machine is divided into slivers here. One that is enrolled (<code>nodeyard sliverd install</code>
          ) and named by a provider of the driver <code>sliver</code> is shown with what it guarantees to
          whom.
        </p>
      )}
      {data?.items.map((machine) => (
        <Section
          key={machine.id}
          title={machine.machine}
          aside={<a href={hrefOf("providers", machine.provider)}>Provider {machine.provider}</a>}
        >
          <MachineCard machine={machine} />
        </Section>
      ))}
      {[...Map.groupBy(data?.unknown ?? [], ({ why }) => why)].map(([why, providers]) => (
        <p key={why} class="dim">
          {providers.map(({ provider }) => provider).join(", ")}: {why}
        </p>
      ))}
    </>
  );
}

function MachineCard({
  machine: { error, remarks, capacity, guaranteed, slivers },
}: {
  readonly machine: Machine;
}) {
  const named = slivers.filter(({ use }) => use !== "free");
  return (
    <div class="stack">
      <Problem error={error ?? undefined} />
      {remarks.map((remark) => (
        <p key={remark}>{remark}</p>
      ))}
      <ul class="amounts">
        {Object.entries(capacity).map(([resource, whole]) => (
          <li key={resource}>
            <span>{resourceText(resource)}</span>
            <span class="bar tall" aria-hidden="true">
              {named.map((sliver) => (
                <span
                  key={sliver.name}
                  class={toneOf(stateOf(sliver))}
                  style={{ width: part(sliver.guarantees[resource] ?? 0, whole) }}
                  title={`${sliver.node ?? sliver.name}: ${amountText(resource, sliver.guarantees[resource] ?? 0)}`}
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
          <SliverLine key={sliver.name} sliver={sliver} of={named} />
        ))}
      </ul>
    </div>
  );
}

/** The state of its node, which has its colour everywhere; of a sliver that is no node, whether it is used. */
function stateOf({ node, use }: Sliver): string {
  return (node === null ? undefined : row("node", node)?.state) ?? use;
}

function SliverLine({ sliver, of }: { readonly sliver: Sliver; readonly of: readonly Sliver[] }) {
  const { name, node, use, phase, doing, error, remarks, guarantees, rspec, effective, loans } = sliver;
  const amount = (resource: string, one: number) => `${resourceText(resource)} ${amountText(resource, one)}`;
  const guaranteed = Object.entries(guarantees).filter(
    ([resource, one]) => resource !== "instances" && one > 0,
  );
  const label = node === null ? undefined : row("node", node)?.label.join(", ");
  const borrowed = Object.entries(effective).filter(([resource, now]) => now > (rspec[resource] ?? 0));
  const called = (sliverName: string) => {
    const other = of.find((one) => one.name === sliverName)?.node;
    return other == null ? sliverName : <Link view="nodes" id={other} />;
  };
  return (
    <li>
      <p>
        <State state={stateOf(sliver)} />{" "}
        {node === null ? use === "free" ? "Free part" : name : <Link view="nodes" id={node} />}{" "}
        <span class="dim">
          {[label, ...guaranteed.map(([resource, one]) => amount(resource, one)), doing]
            .filter(Boolean)
            .join(", ")}
        </span>
      </p>
      {borrowed.map(([resource, now]) => (
        <p key={resource}>↰ borrows {amount(resource, now - (rspec[resource] ?? 0))}</p>
      ))}
      {loans.map(({ to, resource, amount: lent, refused }) => (
        <p key={`${to} ${resource}`} class={refused === null ? "" : "dim"}>
          ↳ lends {amount(resource, lent)} to {called(to)}
          {refused !== null && `: refused, ${refused}`}
        </p>
      ))}
      {remarks.map((remark) => (
        <p key={remark}>{remark}</p>
      ))}
      <Problem error={error ?? undefined} />
      <details>
        <summary>Details</summary>
        <p class="dim">
          {[`sliver ${name}`, phase, ...Object.entries(effective).map(([key, one]) => amount(key, one))].join(
            ", ",
          )}
        </p>
      </details>
    </li>
  );
}
