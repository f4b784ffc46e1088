import { hrefOf } from "../data/route.ts";
import type { Rows } from "../data/rows.ts";
import { rows } from "../data/state.ts";
import { Prose } from "./facts.tsx";
import { Age, Section, State, When } from "./pieces.tsx";

type Row = Rows["standing"];

/** The rest of a longer list is counted: the page of a provider lists all of its hosts. */
const SHOWN = 12;

/** What a person should look at, each with its cause, its next step and a link to its story. Empty: one green line. */
export function NeedsAttention() {
  const all = rows("standing");
  if (all.length === 0) return null;
  const wrong = all.filter(isWrong).toSorted(byWeight);
  return (
    <Section title="Needs attention">
      {wrong.length === 0 && (
        <p class="tone good">
          <span aria-hidden="true">●</span> Nothing: all {all.length} providers, hosts, labels, images and
          members are well, or not tried yet.
        </p>
      )}
      <ul class="lines">
        {wrong.slice(0, SHOWN).map((row) => (
          <li key={row.id}>
            <StandingLine row={row} />
          </li>
        ))}
      </ul>
      {wrong.length > SHOWN && <p class="dim">And {wrong.length - SHOWN} more.</p>}
    </Section>
  );
}

/** One standing: what, since when, why, when it is tried again, and what to do. */
export function StandingLine({ row }: { readonly row: Row }) {
  const { kind, name, standing, since, cause, meaning, next, next_try, remedy } = row;
  const href = storyOf(row);
  return (
    <>
      <State state={standing} />
      <strong>
        {kind} {href === undefined ? name : <a href={href}>{name}</a>}
      </strong>
      {since !== undefined && (
        <span class="dim">
          <Age at={since} />
        </span>
      )}
      <span class="grow long">
        <Prose text={`${meaning}${cause === undefined ? "." : `: ${cause}.`} ${remedy || next}`} />
        {next_try !== undefined && (
          <span class="dim">
            {" "}
            Next try: <When at={next_try} />.
          </span>
        )}
      </span>
    </>
  );
}

export function isWrong({ standing }: Row): boolean {
  return standing === "failing" || standing === "degraded";
}

/** What has a cause of its own comes before what follows from it. */
function byWeight(a: Row, b: Row): number {
  const weight = ({ standing, because }: Row) =>
    (standing === "failing" ? 0 : 1) + (because === undefined ? 0 : 2);
  return weight(a) - weight(b) || a.id.localeCompare(b.id);
}

function storyOf({ kind, name, provider }: Row): string | undefined {
  switch (kind) {
    case "label":
      return hrefOf("labels", name);
    case "image":
      return hrefOf("images", name);
    case "provider":
    case "host":
      return hrefOf("providers", provider ?? name);
    case "sliver-machine":
      return hrefOf("slivers");
    default:
      return undefined;
  }
}
