import { type Operations, ROUTES } from "./generated/operations.ts";

/** Name of an operation in the OpenAPI document. */
export type OperationId = keyof Operations;

type Part = "path" | "query" | "body";
type Of<Id extends OperationId, K extends Part> = Operations[Id][K];
type IsNeeded<T> = undefined extends T ? false : object extends T ? false : true;
type IsOptional<T> = undefined extends T ? false : object extends T ? true : false;

/** Arguments of an operation: only those parts that it has. */
export type Given<Id extends OperationId> = {
  readonly [K in Part as IsNeeded<Of<Id, K>> extends true ? K : never]: Of<Id, K>;
} & {
  readonly [K in Part as IsOptional<Of<Id, K>> extends true ? K : never]?: Of<Id, K>;
};

/** Options of one call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Milliseconds for the call with all its repetitions. */
  readonly timeoutMs?: number;
  /** Idempotency-Key for operations that have one. Without it the client makes one per call, so its repetitions have the same key. */
  readonly key?: string;
}

/** Parts and options of a call. */
export type Arguments<Id extends OperationId> =
  object extends Given<Id>
    ? [given?: Given<Id>, options?: CallOptions]
    : [given: Given<Id>, options?: CallOptions];

/** The body of the answer of an operation. */
export type Reply<Id extends OperationId> = Operations[Id]["reply"];

/** Operations that answer with pages. */
export type ListId = {
  [Id in OperationId]: Reply<Id> extends { readonly next: string | null } ? Id : never;
}[OperationId];

type Item<Id extends ListId> = Reply<Id> extends { readonly items: readonly (infer T)[] } ? T : never;

/** A row of a list. It has all keys unless `fields` was given. */
export type RowOf<Id extends ListId, Query = unknown> = Query extends { readonly fields: string }
  ? Item<Id>
  : Required<Item<Id>>;

/** The query parameters of an operation. */
export type QueryOf<Id extends OperationId> = NonNullable<Operations[Id]["query"]>;

/** The parts of a call, untyped. */
export interface Parts {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** Path and query of a call. */
export function targetOf(id: OperationId, { path = {}, query = {} }: Parts): string {
  const filled = ROUTES[id].path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(path[name])),
  );
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, String(value)] as [string, string]);
  if (pairs.length === 0) return filled;
  return `${filled}?${new URLSearchParams(pairs)}`;
}

/** POST operations that set a state instead of adding something: a repetition has no further effect. */
const IDEMPOTENT: ReadonlySet<OperationId> = new Set([
  "heartbeat_lease",
  "release_lease",
  "import_image_data",
]);

/** Whether a call may be repeated when it is unknown whether it took effect. */
export function isRepeatable(id: OperationId): boolean {
  const { method, keyed } = ROUTES[id];
  return method === "GET" || keyed || IDEMPOTENT.has(id);
}
