import { list } from "../data/api.ts";
import { hrefOf } from "../data/route.ts";
import type { TenantRow } from "../data/rows.ts";
import { versions } from "../data/state.ts";
import { Section, State } from "./pieces.tsx";
import { useChange, useLoad } from "./use.ts";

/** Milliseconds after which the list is read again when something has changed: it has no events of its own. */
const SETTLED_MS = 3_000;
const SOME_CHANGES = 20;

/** What tenants have, wait for and have spent; nothing where no request names one. */
export function Tenants() {
  const { data, reload } = useLoad("tenants", () => list<TenantRow>("/v1/tenants"));
  useChange(Math.floor(versions.node.value / SOME_CHANGES), SETTLED_MS, reload);
  useChange(Math.floor(versions.request.value / SOME_CHANGES), SETTLED_MS, reload);
  const tenants = data?.filter(({ tenant, client }) => tenant !== null && client === null) ?? [];
  if (tenants.length === 0) return null;
  const isShared = tenants.some(({ weight }) => weight !== null);
  const isLimited = tenants.some(({ budget }) => budget !== null);
  return (
    <Section title="Tenants">
      <table class="groups">
        <thead>
          <tr>
            <th scope="col">Tenant</th>
            <th scope="col" class="number">
              Nodes
            </th>
            {isShared && (
              <th scope="col" class="number">
                By weight
              </th>
            )}
            <th scope="col" class="number">
              Waiting
            </th>
            {isLimited && <th scope="col">Budget</th>}
          </tr>
        </thead>
        <tbody>
          {tenants.map(({ id, tenant, nodes, load, weight, waiting, budget }) => (
            <tr key={id}>
              <th scope="row">
                <a href={hrefOf("nodes", undefined, { q: tenant! })}>{tenant}</a>
              </th>
              <td class="number">{nodes}</td>
              {isShared && <td class="number">{weight === null ? "" : `${load} (weight ${weight})`}</td>}
              <td class="number">{waiting}</td>
              {isLimited && <td>{budget !== null && <Budget budget={budget} />}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Budget({ budget }: { readonly budget: NonNullable<TenantRow["budget"]> }) {
  const { spent, amount, currency, level, begins_anew } = budget;
  const text = `${spent} of ${amount} ${currency}`;
  return (
    <>
      {text}{" "}
      {level === "used" && (
        <>
          <State state="used up" /> until {begins_anew?.slice(0, 10)}
        </>
      )}
    </>
  );
}
