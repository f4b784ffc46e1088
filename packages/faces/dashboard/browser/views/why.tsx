import { useEffect } from "preact/hooks";
import { address, go, hrefOf } from "../data/route.ts";
import type { Kind } from "../data/rows.ts";
import { labelNames, matches, providerNames, rows, tables, texts, versions } from "../data/state.ts";
import { Link, Section } from "../ui/pieces.tsx";

/** Found things of one view that are shown; the list of the view has the rest. */
const SHOWN = 10;
/** Ids that may be those of things that are gone, whose story is still known. */
const IDS: readonly (readonly [view: string, form: RegExp])[] = [
  ["requests", /^\d{3}-\d{10}$/],
  ["nodes", /^\d{10}$/],
  ["leases", /^[0-9a-f]{12}$/i],
];

interface Found {
  readonly view: string;
  readonly ids: readonly string[];
}

/** Everything that has the text in its id, name, address, owner or comment. */
function search(text: string): readonly Found[] {
  const among = <K extends Kind & keyof typeof texts>(kind: K) => {
    const textsOf = texts[kind] as (row: unknown) => readonly string[];
    return [...tables[kind].values()].flatMap((row) => (matches(text, textsOf(row)) ? [row.id] : []));
  };
  const named = (names: readonly string[]) => names.filter((name) => matches(text, [name]));
  const hosts = rows("standing").flatMap(({ kind, name, provider }) =>
    kind === "host" && provider != null && matches(text, [name]) ? [provider] : [],
  );
  return [
    { view: "labels", ids: named(labelNames()) },
    { view: "images", ids: named(rows("image").map(({ image }) => image)) },
    { view: "providers", ids: [...new Set([...named(providerNames()), ...hosts])] },
    { view: "requests", ids: among("request") },
    { view: "leases", ids: among("lease") },
    { view: "nodes", ids: among("node") },
  ].filter(({ ids }) => ids.length > 0);
}

/** The view for an id or a whole name; undefined: there are several, or none. */
function targetOf(text: string, found: readonly Found[]): string | undefined {
  const [view] = IDS.find(([, one]) => one.test(text)) ?? [];
  if (view !== undefined) return hrefOf(view, text.toLowerCase());
  // "42" is node 0000000042, and may be a part of something else.
  const node = /^\d{1,9}$/.test(text) ? text.padStart(10, "0") : undefined;
  if (node !== undefined && (found.length === 0 || tables.node.get(node) !== undefined))
    return hrefOf("nodes", node);
  const exact = found.find(({ ids }) => ids.includes(text));
  if (exact !== undefined) return hrefOf(exact.view, text);
  const [only, ...others] = found;
  return only?.ids.length === 1 && others.length === 0 ? hrefOf(only.view, only.ids[0]) : undefined;
}

export function WhyView() {
  const text = address.value.query.get("q")?.trim() ?? "";
  // Read so that the view is drawn again when the stream has brought the rows.
  for (const kind of ["node", "request", "lease"] as const) void versions[kind].value;
  const found = text === "" ? [] : search(text);
  const target = text === "" ? undefined : targetOf(text, found);
  useEffect(() => {
    if (target !== undefined) location.replace(target);
  }, [target]);
  return (
    <>
      <header>
        <h1>Why is this slow?</h1>
      </header>
      {found.map(({ view, ids }) => (
        <Section key={view} title={`${view[0]!.toUpperCase()}${view.slice(1)} with “${text}”`}>
          <p class="ids">
            {ids.slice(0, SHOWN).map((id) => (
              <Link key={id} view={view} id={id} />
            ))}
            {ids.length > SHOWN && <a href={hrefOf(view, undefined, { q: text })}>all {ids.length}</a>}
          </p>
        </Section>
      ))}
      {text !== "" && found.length === 0 && (
        <p role="status">
          Nothing here is called <strong>{text}</strong>.{" "}
          <button type="button" class="small" onClick={() => go(hrefOf("labels", text))}>
            Ask the launchers for a label of this name
          </button>
        </p>
      )}
      <p class="dim">
        The field above (press <kbd>/</kbd>) finds requests, nodes and leases by id, also those that are gone,
        by address, owner, tenant or comment, and labels, images, providers and hosts by name. A part is
        enough.
      </p>
    </>
  );
}
