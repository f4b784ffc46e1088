import { CallRefused, type Client } from "@nodeyard/client";
import type { Canary } from "@nodeyard/model";
import type { Explanation } from "@nodeyard/operations";
import { imageRow } from "@nodeyard/operations/listing";
import { type Clock, defined } from "@nodeyard/runtime";
import { leaseRow } from "../rows.ts";
import type { Ages, Backend, ListName, Rows, ServedPool, Watched } from "./backend.ts";
import { followByEvents, goneByEvents } from "./rest-follow.ts";
import {
  accessOf,
  buildRowOf,
  compareBuilds,
  compareUploads,
  leaseOf,
  msOf,
  nodeRowOf,
  progressOf,
  requestRowOf,
  uploadRowOf,
} from "./rest-rows.ts";

/** The kinds of events by which a server reports changes of each list. */
const KINDS: Readonly<Record<Watched, string>> = {
  nodes: "node",
  requests: "request",
  leases: "lease",
  images: "image",
  standings: "standing",
};

/** For the server to write all records of images, milliseconds: it writes them to the tree one after the other. */
const IMPORT_MS = 600_000;

/**
 * Commands on a Nodeyard behind its API. The server judges rights: a call that the token does not allow rejects with CallRefused.
 * The clock is this machine's, and only for ages.
 */
export function restBackend(client: Client, clock: Clock): Backend {
  return {
    now: () => clock.now(),
    list: async (name, ages) =>
      name === "images"
        ? imagesOf(client, clock, ages)
        : { rows: await rowsOf(client, clock, name, ages), skipped: [] },
    async node(id, ages) {
      const row = await unlessMissing(client.call("get_nodes", { path: { id } }));
      return row && nodeRowOf(row, clock.now(), ages);
    },
    pools: () => poolsOf(client),
    providers: async () => (await all(client.list("list_providers"))).map(({ provider }) => provider),
    image: async (name) => (await unlessMissing(all(client.list("list_images", { image: name }))))?.[0],
    builds: (image) => buildsOf(client, image),
    async buildProgress(image, build) {
      const found = (await buildsOf(client, image)).find(({ id }) => id === build)?.progress;
      return found == null ? undefined : progressOf(found);
    },
    providerRecords: (id) => client.call("get_provider_records", { path: { id } }),
    async explain({ kind, id }) {
      const explanation = await client.call("explain", { path: { kind, id } });
      return { explanation: explanation as unknown as Explanation, silent: [], journal: "of the server" };
    },
    console: (id) => unlessMissing(client.call("get_node_console", { path: { id } })),
    watch(what, onChange) {
      const over = new AbortController();
      // A stream that ends for good is no error here: what watches also looks again from time to time, and that call reports the
      // server.
      const reading = notify(client, what, over.signal, onChange).catch(() => {});
      return {
        close() {
          over.abort();
          return reading;
        },
      };
    },

    async request({ labels, forMs, priority, tenant }) {
      // Nodes that exist before the request are no progress of it. As on the tree, only younger ones are shown while it waits. A
      // user sees only its own nodes; then no older node is listed.
      const newest = client.call("list_nodes", { query: { sort: "-id", limit: 1, fields: "id" } });
      const youngest = (await newest).items[0]?.id ?? "";
      const body = {
        labels,
        for_seconds: Math.ceil(forMs / 1_000),
        ...defined({ priority, tenant }),
      };
      const lease = leaseOf(await client.call("create_lease", { body }));
      return { lease, follow: (onChange) => followByEvents(client, lease, youngest, onChange) };
    },
    access: async ({ id }) => (await client.call("list_lease_nodes", { path: { id } })).items.map(accessOf),
    async release(id) {
      const found = await unlessMissing(
        client.call("release_lease", { path: { id }, body: {} }).then(() => "released" as const),
      );
      return found ?? "unknown";
    },
    // Each call reports a server that does not answer.
    onConnection: () => () => {},

    async hold(id, { comment: why, forSeconds }) {
      // Without `for_seconds` the node is held until max-hold-age; the route refuses 0.
      const body = { why, ...(forSeconds > 0 ? { for_seconds: forSeconds } : {}) };
      await client.call("hold_node", { path: { id }, body });
    },
    deleteNode: (id, now) => client.call("delete_node", { path: { id }, query: { now: `${now}` } }),
    forgetNode: (id) => client.call("forget_node", { path: { id } }),
    untilGone: (id) => goneByEvents(client, id),
    erase: (id, force) => client.call("erase_provider", { path: { id }, body: { force } }),
    async requestBuild(id) {
      // First the builds, then the request: the other way round a build that answers it at once would count as old.
      const before = await buildsOf(client, id);
      await client.call("build_image", { path: { id } });
      return new Set(before.map((build) => build.id));
    },
    pauseImage: (id, paused) => client.call(paused ? "pause_image" : "unpause_image", { path: { id } }),

    exportImages: async () => (await client.call("export_image_data")).records,
    async importImages(all) {
      const text = (data: Uint8Array) => Buffer.from(data).toString();
      const records = Object.fromEntries([...all].map(([path, data]) => [path, text(data)]));
      await client.call("import_image_data", { body: { records } }, { timeoutMs: IMPORT_MS });
    },
    deleteBuild: (image, build) => client.call("delete_build", { path: { image, build } }),
    deleteUpload: ({ ...path }) => client.call("delete_upload", { path }),
    retire: async (id, why) =>
      (await client.call("retire_node", { path: { id }, body: { why } })).backing_node,

    async tokens() {
      const rows = await all(client.list("list_tokens"));
      const items = rows.map(({ name, role, labels, tenants, expires, revoked, ...by }) => ({
        ...{ name, role, labels, tenants },
        expires: msOf(expires) ?? 0,
        revoked: msOf(revoked),
        createdBy: by.created_by,
        revokedBy: by.revoked_by,
      }));
      return { items, skipped: [] };
    },
    async createToken({ name, role, labels, tenants, forMs }) {
      const body = { name, role, labels, tenants, for_seconds: Math.ceil(forMs / 1_000) };
      const { token, expires } = await client.call("create_token", { body });
      return { text: token, expires: Date.parse(expires) };
    },
    revokeToken: (name) => client.call("revoke_token", { path: { name } }),
  };
}

/** Reads all pages of a list: a server sends at most a thousand rows at once. */
async function rowsOf(
  client: Client,
  clock: Clock,
  name: Exclude<ListName, "images">,
  ages: Ages,
): Promise<Rows["rows"]> {
  switch (name) {
    case "nodes": {
      const rows = await all(client.list("list_nodes"));
      return rows.map((row) => nodeRowOf(row, clock.now(), ages));
    }
    case "leases": {
      const rows = await all(client.list("list_leases"));
      return rows.map((row) => leaseRow(leaseOf(row), clock.now(), ages));
    }
    case "requests": {
      const rows = await all(client.list("list_requests"));
      return rows.map((row) => requestRowOf(row, clock.now()));
    }
    case "uploads": {
      const rows = (await all(client.list("list_uploads"))).sort(compareUploads);
      return rows.map((row) => uploadRowOf(row, clock.now(), ages));
    }
    case "standings":
      return all(client.list("list_standings"));
    case "builds": {
      const rows = (await all(client.list("list_builds"))).sort(compareBuilds);
      return rows.map((row) => buildRowOf(row, clock.now(), ages));
    }
  }
}

/** The list of images has neither requests for builds nor trials. */
async function imagesOf(client: Client, clock: Clock, ages: Ages): Promise<Rows> {
  const { items, skipped } = await client.call("list_image_status");
  const rows = items.map(({ image, paused, build_request: state, build_requested_at: at, canary }) => {
    const request = state === null ? null : { state, at: (msOf(at) ?? 0) / 1_000 };
    return imageRow({ image, paused, request, canary: canary as Canary | null }, clock.now(), ages);
  });
  return { rows, skipped };
}

/** Builds of an image, the newest first, with the id as records have it: without the image's name. */
async function buildsOf(client: Client, image: string) {
  const rows = ((await unlessMissing(all(client.list("list_builds", { image })))) ?? []).sort(compareBuilds);
  return rows.map((row) => ({ ...row, id: row.id.slice(image.length + 1) }));
}

/**
 * Pools as the labels name them, which every role may list; the list of pools itself is for operators. A pool without labels is
 * missing.
 */
async function poolsOf(client: Client): Promise<readonly ServedPool[]> {
  const found = new Map<string, ServedPool & { readonly labels: string[] }>();
  for (const { label, pools } of await all(client.list("list_labels")))
    for (const name of pools) {
      const cut = name.lastIndexOf("/");
      const entry = { provider: name.slice(0, cut), pool: name.slice(cut + 1), labels: [] };
      if (!found.has(name)) found.set(name, entry);
      found.get(name)!.labels.push(label);
    }
  return [...found.values()];
}

/** Runs until `signal` aborts, then resolves or rejects; rejects when the server cannot be reached for about a minute. */
async function notify(
  client: Client,
  what: readonly Watched[],
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  const kinds = what.map((name) => KINDS[name]).join(",");
  for await (const _ of client.events({ kinds }, { signal })) onChange();
}

/** Reads all pages. */
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
