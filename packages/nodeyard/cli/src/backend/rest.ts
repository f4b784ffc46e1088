import {
  type Arguments,
  type CallOptions,
  CallRefused,
  type Client,
  type Given,
  type ListId,
  type OperationId,
  type Reply,
  type RowOf,
} from "@nodeyard/client";
import type { Explanation } from "@nodeyard/operations";
import { type Clock, compareText } from "@nodeyard/runtime";
import type { Backend } from "./backend.ts";

/** The order of lists that the tree does not have by id: builds by image, then the newest first. */
const ORDER: Readonly<Record<string, (a: never, b: never) => number>> = {
  list_builds: (a: RowOf<"list_builds">, b: RowOf<"list_builds">) =>
    compareText(a.image, b.image) || compareText(b.since ?? "", a.since ?? ""),
  list_uploads(a: RowOf<"list_uploads">, b: RowOf<"list_uploads">) {
    const keys = ["image", "build", "provider", "upload"] as const;
    return keys.reduce((order, key) => order || compareText(a[key], b[key]), 0);
  },
};

/**
 * Commands on a Nodeyard behind its API. The server judges rights: a call that the token does not allow rejects with CallRefused.
 * The clock is this machine's, and only for ages.
 */
export function restBackend(client: Client, clock: Clock): Backend {
  const call = <Id extends OperationId>(id: Id, given: Given<Id>, options?: CallOptions) =>
    client.call(id, ...([given, options] as unknown as Arguments<Id>));
  const list: Backend["list"] = async (id, only) => {
    // It has no pages, and names the records that cannot be read.
    if (id === "list_image_status") {
      const { items, skipped } = await client.call("list_image_status");
      return { rows: items as never, skipped };
    }
    const rows = (await unlessMissing(all(client.list(id as ListId, { ...only })))) ?? [];
    return { rows: rows.sort(ORDER[id] as never) as never, skipped: [] };
  };
  return {
    now: () => clock.now(),
    call,
    async find<Id extends OperationId>(id: Id, given: Given<Id>) {
      return (await unlessMissing(call(id, given).then((reply): [Reply<Id>] => [reply]))) ?? [];
    },
    list,
    async progress(image, build) {
      const { rows } = await list("list_builds", { image });
      return rows.find(({ id }) => id === build)?.progress ?? undefined;
    },
    async explain({ kind, id }) {
      const explanation = await client.call("explain", { path: { kind, id } });
      return { explanation: explanation as unknown as Explanation, silent: [], journal: "of the server" };
    },
    watch(what, onChange) {
      const over = new AbortController();
      const notify = async () => {
        for await (const _ of client.events({ kinds: what.join(",") }, { signal: over.signal })) onChange();
      };
      // A stream that ends for good is no error here: what watches also looks again from time to time, and that call reports the
      // server.
      const reading = notify().catch(() => {});
      return {
        close() {
          over.abort();
          return reading;
        },
      };
    },
    async youngestNode() {
      const { items } = await client.call("list_nodes", { query: { sort: "-id", limit: 1, fields: "id" } });
      return items[0]?.id ?? "";
    },
    events(what, signal) {
      if ("node" in what) return client.events({ kinds: "node", id: what.node }, { signal });
      // Rows without a key pass its filter: `label` is of nodes, `labels` of requests and leases. Without them a busy yard would
      // send every change.
      const labels = [...new Set(what.lease.labels)].join(",");
      return client.events({ kinds: "lease,request,node", label: labels, labels }, { signal });
    },
    // Each call reports a server that does not answer.
    onConnection: () => () => {},
  };
}

/** Reads all pages: a server sends at most a thousand rows at once. */
async function all<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const row of rows) found.push(row);
  return found;
}

/**
 * Undefined where there is no such thing, or the caller may not see it, which a server does not tell apart: 404 for one, and 400 for a list of
 * what belongs to it.
 */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    const gone = error instanceof CallRefused && (error.status === 404 || error.code === "api.unknown_value");
    if (gone) return undefined;
    throw error;
  }
}
