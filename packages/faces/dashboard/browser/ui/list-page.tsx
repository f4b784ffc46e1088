import type { ComponentChildren } from "preact";
import { address, refine } from "../data/route.ts";
import type { Kind, Rows } from "../data/rows.ts";
import { matches, tables, texts, versions } from "../data/state.ts";
import { type Column, VirtualList } from "./virtual-list.tsx";

interface Props<K extends Kind> {
  readonly title: string;
  readonly kind: K;
  readonly columns: readonly Column<Rows[K]>[];
  /** States that the filter offers. */
  readonly states: readonly string[];
  /** Where rows come from, for a list without any. */
  readonly source: ComponentChildren;
  readonly sort: string;
  readonly children?: ComponentChildren;
}

/** A list of all rows of a kind. The filter is part of the address, so that it can be linked. */
export function ListPage<K extends Kind & ("node" | "request" | "lease")>(props: Props<K>) {
  const { title, kind, columns, states, source, children } = props;
  const { query } = address.value;
  const text = query.get("q") ?? "";
  const textsOf = texts[kind] as (row: Rows[K]) => readonly string[];
  const state = query.get("state") ?? "";
  const sort = query.get("sort") ?? props.sort;
  const keeps = (row: Rows[K]) =>
    (state === "" || row.state === state) && (text === "" || matches(text, textsOf(row)));
  return (
    <div class="list-page">
      <header>
        <h1>
          {title} <Total kind={kind} />
        </h1>
        <div class="tools">
          <label>
            <span class="hidden">Filter</span>
            <input
              type="search"
              placeholder="Filter"
              value={text}
              onInput={({ currentTarget }) => refine({ q: currentTarget.value })}
            />
          </label>
          <label>
            <span class="hidden">State</span>
            <select value={state} onChange={({ currentTarget }) => refine({ state: currentTarget.value })}>
              <option value="">All states</option>
              {states.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
          {children}
        </div>
      </header>
      <VirtualList
        label={title}
        table={tables[kind]}
        columns={columns}
        layout={kind}
        keeps={keeps}
        filter={JSON.stringify([text, state])}
        sort={sort}
        onSort={(wanted) => refine({ sort: wanted })}
        empty={text === "" && state === "" ? source : "Nothing matches the filter."}
      />
    </div>
  );
}

function Total({ kind }: { readonly kind: Kind }) {
  void versions[kind].value;
  return <span class="count">{tables[kind].size}</span>;
}
