import { Component, type ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Ordered } from "../data/ordered.ts";
import type { Table } from "../data/table.ts";
import { windowOf } from "../data/window.ts";
import { isTyping } from "./use.ts";

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  /** Value to sort by; absent: the column cannot be sorted. */
  readonly value?: (row: T) => string | number;
  readonly cell: (row: T, id: string) => ComponentChildren;
  /** Hidden on narrow screens. */
  readonly wide?: boolean;
}

interface Props<T> {
  /** Name for screen readers. */
  readonly label: string;
  readonly table: Table<T>;
  /** The first column contains the link of the row. */
  readonly columns: readonly Column<T>[];
  /** CSS class with the column widths. */
  readonly layout: string;
  readonly keeps: (row: T) => boolean;
  /** Changes whenever `keeps` changes. */
  readonly filter: string;
  /** Key of a column; "-" in front of it means descending. */
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  readonly empty: ComponentChildren;
}

const ROW_PX = 34;
const KEYS: Readonly<Record<string, number>> = {
  j: 1,
  ArrowDown: 1,
  k: -1,
  ArrowUp: -1,
  PageDown: 12,
  PageUp: -12,
};

/** A table of any length. Only visible rows exist in the document. */
export function VirtualList<T>(props: Props<T>) {
  const { label, table, columns, layout, keeps, filter, sort, onSort, empty } = props;
  const ordered = useMemo(() => {
    const column = columns.find(({ key }) => key === sort.replace("-", ""));
    return new Ordered(table, { keeps, value: column?.value ?? (() => 0), descending: sort.startsWith("-") });
  }, [table, filter, sort]);
  const [, redraw] = useState(0);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [cursor, setCursor] = useState<string | undefined>();
  const scroller = useRef<HTMLDivElement>(null);

  // A layout effect runs in the same task as the first render, so no change is missed between them.
  useLayoutEffect(
    () =>
      table.listen((changes) => {
        if (ordered.apply(changes)) redraw((count) => count + 1);
      }),
    [table, ordered],
  );
  useLayoutEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = KEYS[event.key];
      const inside = scroller.current?.contains(document.activeElement) === true;
      // Arrow keys scroll the page unless the focus is in the list.
      if (step === undefined || isTyping(event) || (!inside && event.key.length > 1)) return;
      event.preventDefault();
      move(step);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  useLayoutEffect(() => {
    if (cursor !== undefined)
      scroller.current
        ?.querySelector<HTMLElement>(`[data-id="${CSS.escape(cursor)}"] a`)
        ?.focus({ preventScroll: true });
  }, [cursor]);

  const move = (step: number) => {
    const at = cursor === undefined ? -1 : ordered.indexOf(cursor);
    const next = Math.min(ordered.length - 1, Math.max(0, at < 0 ? 0 : at + step));
    const place = ordered.at(next);
    const element = scroller.current;
    if (place === undefined || element === null) return;
    if (next * ROW_PX < element.scrollTop) element.scrollTop = next * ROW_PX;
    const below = (next + 1) * ROW_PX - element.clientHeight;
    if (below > element.scrollTop) element.scrollTop = below;
    setTop(element.scrollTop);
    setCursor(place.id);
  };

  const { first, last } = windowOf(top, height, ROW_PX, ordered.length);
  const visible = [];
  for (let at = first; at < last; at++) {
    const { id, row } = ordered.at(at)!;
    visible.push(<Row key={id} id={id} row={row} at={at} columns={columns} isCurrent={id === cursor} />);
  }
  return (
    <div class={`list ${layout}`} role="table" aria-label={label} aria-rowcount={ordered.length + 1}>
      <div role="rowgroup" class="head">
        <div role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <Head key={column.key} column={column} sort={sort} onSort={onSort} />
          ))}
        </div>
      </div>
      <div
        role="rowgroup"
        class="scroller"
        ref={scroller}
        tabIndex={ordered.length === 0 ? -1 : 0}
        onScroll={({ currentTarget }) => setTop(Math.floor(currentTarget.scrollTop / ROW_PX) * ROW_PX)}
      >
        <div role="presentation" class="all" style={{ height: `${ordered.length * ROW_PX}px` }}>
          {visible}
        </div>
        {ordered.length === 0 && (
          <div role="row">
            <div role="cell" class="empty">
              {empty}
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

function Head<T>({
  column: { key, title, value, wide },
  sort,
  onSort,
}: {
  readonly column: Column<T>;
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}) {
  const direction = sort === key ? "ascending" : sort === `-${key}` ? "descending" : undefined;
  return (
    <div role="columnheader" class={wide ? "wide" : ""} {...(direction && { "aria-sort": direction })}>
      {value === undefined ? (
        title
      ) : (
        <button type="button" onClick={() => onSort(direction === "ascending" ? `-${key}` : key)}>
          {title}
          <span aria-hidden="true">
            {direction === undefined ? "" : direction === "ascending" ? " ↑" : " ↓"}
          </span>
        </button>
      )}
    </div>
  );
}

interface RowProps<T> {
  readonly id: string;
  readonly row: T;
  readonly at: number;
  readonly columns: readonly Column<T>[];
  readonly isCurrent: boolean;
}

/** Drawn again only when its own row changes: with thousands of rows, drawing all at each change would be slow. */
class Row<T> extends Component<RowProps<T>> {
  override shouldComponentUpdate(next: RowProps<T>): boolean {
    const { row, at, columns, isCurrent } = this.props;
    return row !== next.row || at !== next.at || columns !== next.columns || isCurrent !== next.isCurrent;
  }

  override render({ id, row, at, columns, isCurrent }: RowProps<T>) {
    return (
      <div
        role="row"
        class={isCurrent ? "row current" : "row"}
        data-id={id}
        aria-rowindex={at + 2}
        style={{ transform: `translateY(${at * ROW_PX}px)` }}
      >
        {columns.map(({ key, cell, wide }) => (
          <div key={key} role="cell" class={wide ? "wide" : ""}>
            {cell(row, id)}
          </div>
        ))}
      </div>
    );
  }
}
