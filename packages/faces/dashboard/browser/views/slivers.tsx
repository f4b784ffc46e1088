import { amountText, BAR_RESOURCES, type Having, resourceText } from "@nodeyard/client/amounts";
import { call } from "../data/api.ts";
import { hrefOf } from "../data/route.ts";
import type { Machines } from "../data/rows.ts";
import { leaseOf, row, versions } from "../data/state.ts";
import { Caches } from "../ui/caches.tsx";
import { Facts, Labels, Prose } from "../ui/facts.tsx";
import { HavingBars, Legend } from "../ui/having.tsx";
import { Job, Link, Owner, Problem, Section, State } from "../ui/pieces.tsx";
import { useChange, useLoad } from "../ui/use.ts";

type Machine = Machines["items"][number];
type Sliver = Machine["slivers"][number];

/** Milliseconds after which machines are asked again when many nodes have changed. Each read asks every machine. */
const SETTLED_MS = 5_000;
const SOME_CHANGES = 50;

/** The machines of a provider, or of all. */
export function SliversView({ id }: { readonly id: string | undefined }) {
  const query = id === undefined ? "" : `?provider=${encodeURIComponent(id)}`;
  const { data, error, loading, reload } = useLoad(`slivers ${id}`, () =>
    call<Machines>("GET", `/v1/sliver-machines${query}`),
  );
  useChange(Math.floor(versions.node.value / SOME_CHANGES), SETTLED_MS, reload);
  return (
    <>
      <header>
        <h1>
          Sliver machines {id !== undefined && `of ${id} `}
          <span class="count">{data?.items.length}</span>
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
          aside={
            <span class="ids">
              {row("node", machine.machine) !== undefined && (
                <a href={hrefOf("nodes", machine.machine)}>Backing node</a>
              )}
              <a href={hrefOf("providers", machine.provider)}>Provider {machine.provider}</a>
            </span>
          }
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

function MachineCard({ machine }: { readonly machine: Machine }) {
  const { error, remarks, capacity, guaranteed, uses, slivers, spares, caches } = machine;
  const whole: Having = { caps: capacity, guarantees: guaranteed, uses, borrowed: {} };
  const others = Object.entries(capacity).filter(([resource]) => !isBarred(resource));
  return (
    <div class="stack">
      <Problem error={error ?? undefined} />
      {remarks.map((remark) => (
        <p key={remark}>
          <Prose text={remark} />
        </p>
      ))}
      {Object.keys(capacity).length > 0 && (
        <>
          <Legend />
          <HavingBars of={whole} among={[whole]} />
          <p class="dim">
            {[
              ...others.map(
                ([resource, most]) =>
                  `${resourceText(resource)}: ${amountText(resource, guaranteed[resource] ?? 0)} of ${amountText(resource, most)}`,
              ),
              `kept ready: ${sparesText(spares)}`,
            ].join("; ")}
          </p>
        </>
      )}
      <ul class="cards">
        {slivers.map((sliver) => (
          <SliverCard key={sliver.name} sliver={sliver} among={slivers} />
        ))}
      </ul>
      <Caches caches={caches} />
    </div>
  );
}

function isBarred(resource: string): boolean {
  return BAR_RESOURCES.some((one) => one === resource);
}

/** "2 of job (running)". */
function sparesText(spares: Machine["spares"]): string {
  const kinds = Map.groupBy(spares, ({ image, phase }) => `${image ?? "the default image"} (${phase})`);
  return [...kinds].map(([kind, all]) => `${all.length} of ${kind}`).join(", ") || "none";
}

/** The state of its node; of a sliver that is no node, whether it is used. */
function stateOf({ node, use, held }: Sliver): string {
  if (held) return "suspended";
  return (node === null ? undefined : row("node", node)?.state) ?? use;
}

function SliverCard({ sliver, among }: { readonly sliver: Sliver; readonly among: readonly Sliver[] }) {
  const { name, node, use, phase, doing, error, remarks, usage, guarantees, rspec, effective, loans } =
    sliver;
  const called = (sliverName: string) => {
    const other = among.find((one) => one.name === sliverName)?.node;
    return other == null ? sliverName : <Link view="nodes" id={other} />;
  };
  return (
    <li>
      <p>
        <State state={stateOf(sliver)} />{" "}
        {(usage.memoryKills ?? 0) > 0 && <State state="killed for memory" />}{" "}
        {node === null ? use === "free" ? "Free part" : name : <Link view="nodes" id={node} />}{" "}
        {node !== null && <Labels labels={row("node", node)?.label ?? []} />}{" "}
        {node !== null && <Holder node={node} />} {doing !== null && <span class="dim">{doing}</span>}
      </p>
      <HavingBars of={sliver} among={among} />
      {loans.map(({ to, resource, amount: lent, refused }) => (
        <p key={`${to} ${resource}`} class={refused === null ? "" : "dim"}>
          ↳ lends {resourceText(resource)} {amountText(resource, lent)} to {called(to)}
          {refused !== null && `: refused, ${refused}`}
        </p>
      ))}
      {remarks.map((remark) => (
        <p key={remark}>{remark}</p>
      ))}
      <Problem error={error ?? undefined} />
      <details>
        <summary>Details</summary>
        <Facts
          facts={{
            sliver: name,
            phase,
            also_guaranteed: amountsText(guarantees, ([key]) => key !== "instances" && !isBarred(key)),
            rspec: amountsText(rspec),
            rspec_after_loans: amountsText(effective, ([key, one]) => one !== rspec[key]),
            usage: Object.entries(usage).map(([key, one]) => `${key} ${one}`),
          }}
        />
      </details>
    </li>
  );
}

/** Raw amounts, in words. */
function amountsText(
  amounts: Sliver["rspec"],
  isShown: (entry: [resource: string, amount: number]) => boolean = () => true,
): string {
  return Object.entries(amounts)
    .filter(isShown)
    .map(([resource, one]) => `${resourceText(resource)} ${amountText(resource, one)}`)
    .join(", ");
}

/** The client and job that have the node. */
function Holder({ node }: { readonly node: string }) {
  const lease = leaseOf(node);
  if (lease !== undefined)
    return (
      <>
        for <Owner owner={lease.owner} />
        {lease.job != null && (
          <>
            , job <Job job={lease.job} />
          </>
        )}
        , lease <Link view="leases" id={lease.id} />
      </>
    );
  const request = row("node", node)?.allocated_to;
  if (request == null) return null;
  return (
    <>
      for <Prose text={row("request", request)?.requestor ?? "request"} />,{" "}
      <Link view="requests" id={request} />
    </>
  );
}
