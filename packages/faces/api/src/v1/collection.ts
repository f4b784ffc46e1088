import type { ApiRole } from "@nodeyard/model";
import { jsonOnly, pick, type Row } from "@nodeyard/operations/listing";
import { choices, sleep } from "@nodeyard/runtime";
import { z } from "zod";
import { poolsIn } from "./counts.ts";
import { seesAll, seesLabel } from "./principal.ts";
import { ApiError, notFound } from "./problems.ts";
import { type Call, type Route, route } from "./route.ts";

/**
 * Things of one kind, as a list with filters, an order and pages, and one by one. The single source of two routes and their
 * schemas.
 */
export interface Collection {
  /** In the path, and plural. */
  readonly name: string;
  /** For the summary: what a row is. */
  readonly about: string;
  readonly roles: readonly ApiRole[];
  readonly row: z.ZodObject;
  /** The key that names a row, unique in the list; pages are cut by it. */
  readonly key: string;
  /** Keys that rows may be chosen by; a key with several values passes if one of them fits. */
  readonly filters: readonly string[];
  /** What the caller may see; more than one page of it may be made in vain, so that it must be cheap. */
  rows(call: Call): Iterable<Row> | Promise<Iterable<Row>>;
  /** Returns one item; undefined: it does not exist, or the caller may not see it. Absent: items have no page of their own. */
  one?(call: Call, id: string): Row | undefined | Promise<Row | undefined>;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/** Characters of a parameter. */
const MAX_TEXT = 1_000;

/** The routes of a collection: `list_NAME`, and `get_NAME` where it has `one`. */
export function routesOf(collection: Collection): readonly Route[] {
  const { name, about, roles, row, one } = collection;
  const keys = Object.keys(row.shape);
  const list = route({
    id: `list_${name}`,
    method: "GET",
    path: `/v1/${name}`,
    summary: `List ${about}`,
    roles,
    query: queryOf(collection, keys),
    status: 200,
    // With `fields` any key may be left out.
    reply: z.object({ items: z.array(row.partial()), next: z.string().nullable() }),
    handle: async (call) => {
      const rows = await passing(collection, call, call.query as Query);
      return page(collection, rows, call.query as Query);
    },
  });
  if (one === undefined) return [list];
  const get = route({
    id: `get_${name}`,
    method: "GET",
    path: `/v1/${name}/{id}`,
    summary: `Get one of ${about}`,
    roles,
    params: z.object({ id: z.string().min(1).max(MAX_TEXT) }),
    status: 200,
    reply: row,
    handle: async (call) => {
      const found = await one(call, call.params.id);
      if (found === undefined) throw notFound(`${name} ${JSON.stringify(call.params.id)}`);
      return found;
    },
  });
  return [list, get];
}

/** Parameters of a list; all others are filters. */
interface Query extends Readonly<Record<string, string | number | undefined>> {
  readonly sort?: string;
  readonly limit: number;
  readonly cursor?: string;
  readonly fields?: string;
}

/** Strict: a misspelt filter is an error, because a list without it would look like its answer. */
function queryOf({ filters, key }: Collection, keys: readonly string[]): z.ZodObject {
  const text = z.string().max(MAX_TEXT).optional();
  const chosen = filters.map((name) => [name, text.describe(`values of ${name}, with commas between`)]);
  return z.strictObject({
    ...(Object.fromEntries(chosen) as Record<string, typeof text>),
    sort: z
      .enum(keys.flatMap((name) => [name, `-${name}`]))
      .optional()
      .describe(`key to sort by, - for descending; otherwise ${key}`),
    limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT),
    cursor: text.describe("`next` of the page before, with the same other parameters"),
    fields: text.describe(`keys to return, with commas between, of: ${keys.join(", ")}`),
  });
}

/** The value that a filter is of; `job.id` is one of a part of the row. */
function valueAt(row: Row, name: string): unknown {
  return name.split(".").reduce<unknown>((value, key) => (value as Row | null)?.[key] ?? null, row);
}

/** Rows between two pauses: a long list must not keep the launcher from its work. */
const AT_ONCE = 200;
/** Rows that cost the process as much as a call: so many more are charged to the caller. */
const ROWS_PER_CALL = 500;

/** All rows that pass the filters: O(rows of the list), since a page is cut after sorting. */
async function passing(collection: Collection, call: Call, query: Query): Promise<readonly Row[]> {
  const found: Row[] = [];
  let count = 0;
  const filters = checkable(collection, call, query);
  for (const row of await collection.rows(call)) {
    for (const { name, known } of filters) for (const value of [row[name]].flat()) known.add(String(value));
    if (collection.filters.every((name) => passes(valueAt(row, name), query[name]))) found.push(row);
    if (++count % AT_ONCE === 0) await sleep(call.parts.clock, 0);
  }
  call.charge(Math.floor(count / ROWS_PER_CALL));
  // An empty value stands for rows without one.
  for (const { name, known } of filters)
    for (const value of String(query[name]).split(",")) if (value !== "") demandKnown(name, value, known);
  return found;
}

/** Throws ApiError for a value of a filter that nothing has: an empty list would look like an answer. */
export function demandKnown(name: string, value: string, known: ReadonlySet<string>): void {
  if (known.has(value)) return;
  const message = `${name}: there is no ${JSON.stringify(value)} here; ${choices(value, known)}`;
  throw new ApiError(400, "api.unknown_value", message);
}

/** A filter whose values can be judged, and those known so far; all that rows have are known, too. */
interface Checkable {
  readonly name: string;
  readonly known: Set<string>;
}

/**
 * Filters of a query by states, kinds, providers, pools, images and labels: a value that does not exist is an error, because an empty list would look
 * like "none left". Ids and names of clients come and go, and so are not judged; nor are providers and pools for a caller that sees only its own.
 */
function checkable({ filters, row }: Collection, call: Call, query: Query): readonly Checkable[] {
  const { known, principal } = call;
  const names = (of: string): Iterable<string> | undefined => {
    const pools = poolsIn(known.view).map(({ record }) => record);
    if (of === "label" || of === "labels")
      return pools.flatMap(({ supportedLabels }) =>
        supportedLabels.filter((one) => seesLabel(principal, one)),
      );
    if (!seesAll(principal)) return undefined;
    if (of === "pool") return pools.map(({ name }) => name ?? "");
    const standings = known.view.standings.list();
    if (of === "image") return standings.flatMap(({ kind, name }) => (kind === of ? name : []));
    if (of !== "provider") return undefined;
    const stated = standings.map(({ kind, name, provider }) => (kind === of ? name : provider));
    return [...pools.map(({ providerName }) => providerName), ...stated].filter((one) => one != null);
  };
  return filters.flatMap((name) => {
    if (query[name] === undefined) return [];
    const schema = row.shape[name];
    const values = schema instanceof z.ZodEnum ? schema.options.map(String) : names(name);
    return values === undefined ? [] : [{ name, known: new Set(values) }];
  });
}

/** One page. Pages are cut by value and key, not by number, so that items that come or go between two pages do not shift the others. */
function page({ key, row }: Collection, chosen: readonly Row[], query: Query): object {
  const descending = query.sort?.startsWith("-") === true;
  const by = query.sort?.replace(/^-/, "") ?? key;
  const place = (one: Row): Place => [sortable(one[by]), String(one[key])];
  const compare = (a: Place, b: Place) => (descending ? -1 : 1) * comparePlaces(a, b);
  const after = query.cursor === undefined ? undefined : readCursor(query.cursor);
  const sorted = chosen
    .map((one) => ({ one, at: place(one) }))
    .filter(({ at }) => after === undefined || compare(at, after) > 0)
    .sort((a, b) => compare(a.at, b.at));
  const items = sorted.slice(0, query.limit);
  // Null as `next` says that this is the last page.
  const last = sorted.length > items.length ? items.at(-1) : undefined;
  const wanted = fieldsIn(query.fields, Object.keys(row.shape));
  return {
    items: items.map(({ one }) => (wanted === undefined ? one : pick(one, wanted))),
    next: last === undefined ? null : Buffer.from(JSON.stringify(last.at)).toString("base64url"),
  };
}

/** `wanted`: values with commas between; undefined: no filter. An empty value matches null. */
function passes(value: unknown, wanted: string | number | undefined): boolean {
  if (wanted === undefined) return true;
  const values = [value].flat().map((one) => (one === null ? "" : String(one)));
  return String(wanted)
    .split(",")
    .some((one) => values.includes(one));
}

/** The value that a row is sorted by, and its key. */
type Place = readonly [number | string | null, string];

/** Lists and objects are compared by their JSON, so that any key can be sorted by. */
function sortable(value: unknown): Place[0] {
  if (value === null || value === undefined) return null;
  if (typeof value === "number" || typeof value === "string") return value;
  return JSON.stringify(value);
}

function comparePlaces([a, aKey]: Place, [b, bKey]: Place): number {
  return compareValues(a, b) || compareValues(aKey, bKey);
}

/** Nothing, then numbers, then texts: a total order, which pages need. */
function compareValues(a: Place[0], b: Place[0]): number {
  if (a === b) return 0;
  const rank = (value: Place[0]) => (value === null ? 0 : typeof value === "number" ? 1 : 2);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return a! < b! ? -1 : 1;
}

const cursorSchema = z.tuple([z.union([z.number(), z.string(), z.null()]), z.string()]);

/** Cursors come from clients and may be anything. Throws ApiError. */
function readCursor(text: string): Place {
  try {
    return cursorSchema.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    throw new ApiError(400, "api.bad_cursor", "cursor: give `next` of the page before as it is");
  }
}

/** Undefined: all keys. Throws ApiError for a key that rows do not have. */
function fieldsIn(text: string | undefined, keys: readonly string[]) {
  const names = text?.split(",").filter((name) => name !== "") ?? [];
  const unknown = names.find((name) => !keys.includes(name));
  if (unknown !== undefined)
    throw new ApiError(
      400,
      "api.bad_request",
      `fields: there is no ${JSON.stringify(unknown)}; there are ${keys.join(", ")}`,
    );
  return names.length === 0 ? undefined : jsonOnly(...names);
}

/** All items for callers without a limit of tenants or labels, none for others: these items belong to no tenant. */
export function unscoped(
  { principal, known }: Call,
  rows: (known: Call["known"]) => Iterable<Row>,
): Iterable<Row> {
  return seesAll(principal) ? rows(known) : [];
}

/** Rows of those items that have one, made one by one as the list is read. */
export function* gather<T>(items: Iterable<T>, rowOf: (item: T) => Row | undefined): Generator<Row> {
  for (const item of items) {
    const row = rowOf(item);
    if (row !== undefined) yield row;
  }
}
