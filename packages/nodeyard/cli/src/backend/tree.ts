import type { Given, Reply, YardEvent } from "@nodeyard/client";
import {
  type CommandChange,
  decodeLease,
  decodeNode,
  decodeRequest,
  LEASES,
  leasePath,
  paths,
  readable,
  STANDINGS,
} from "@nodeyard/model";
import { type OperationHandles, treeNow, youngestNode } from "@nodeyard/operations";
import { leaseFields, nodeFields, progressRow, requestFields, rowOf } from "@nodeyard/operations/listing";
import type { Backend, Followed, Watched } from "./backend.ts";

import { changes, type Handlers, lists, reads, type Served } from "./operations.ts";

/** The paths beneath which each list changes. */
const ROOTS: Readonly<Record<Watched, string>> = {
  node: paths.nodes,
  request: paths.requests,
  lease: LEASES,
  image: paths.images,
  standing: STANDINGS,
};

/**
 * Commands on the tree itself. `journal`: the file of this machine, which `explain` reads too. Whoever reaches the tree may do
 * everything: rights are checked by servers alone. Changes are noted for the audit, refused ones included, under the names and subjects that
 * REST v1 has for them; before the command prints its result, as a server does before it answers. `note` never rejects: what was changed is
 * no error because it could not be noted, and a script that repeats it would ask for its nodes twice.
 */
export function treeBackend(
  handles: OperationHandles,
  journal: string,
  person: string,
  note: (change: CommandChange) => Promise<void>,
): Backend {
  const { tree } = handles;
  const reading: Handlers = reads(handles);
  const changing: Handlers = changes(handles, person);
  async function call(id: Served, given: object): Promise<unknown> {
    const { path = {}, body } = given as {
      readonly path?: object;
      readonly body?: { readonly why?: string };
    };
    const work = (reading[id] ?? changing[id]) as (given: object) => Promise<unknown>;
    if (id in reading) return work(given);
    const subject = Object.values(path).join("/");
    const entry = { who: `cli:${person}`, action: id, subject, why: body?.why ?? null };
    const result = await work(given).catch(async (error: unknown) => {
      await note({ ...entry, status: 409 });
      throw error;
    });
    await note({ ...entry, status: 200 });
    return result;
  }
  return {
    now: () => treeNow(handles),
    call: async <Id extends Served>(id: Id, given: Given<Id>) => (await call(id, given)) as Reply<Id>,
    async find<Id extends Served>(id: Id, given: Given<Id>) {
      const found = await call(id, given);
      return found === undefined ? [] : [found as Reply<Id>];
    },
    async list(id, only) {
      const { items, skipped } = await lists[id](handles);
      const chosen = only === undefined ? items : items.filter(({ image }) => image === only.image);
      return { rows: chosen as never, skipped };
    },
    async progress(image, build) {
      // Loaded only here: other commands ask no members.
      const { imageWork } = await import("./tree-asks.ts");
      const found = (await imageWork(handles, image)).find((work) => `${image}-${work.build}` === build);
      return found && progressRow(found);
    },
    async explain(subject) {
      const { explainByTree } = await import("./tree-asks.ts");
      return explainByTree(handles, journal, subject);
    },
    watch(what, onChange) {
      // Of a lock only whether it is held is shown.
      const interest = (path: string) => (/\/lock(\/|$)/.test(path) ? "name" : "data");
      // One feed for each list; the first walk of each calls `onChange` for what is there.
      const feeds = what.map((name) => tree.feed(ROOTS[name], { interest, onChange }));
      return { close: async () => void (await Promise.all(feeds.map((feed) => feed.close()))) };
    },
    youngestNode: () => youngestNode(handles),
    events: (what, signal) => eventsOf(handles, what, signal),
    onConnection: (fn) => tree.onSession(({ state }) => fn(state)),
  };
}

/** How the row of a record is made. */
const READERS = {
  lease: (id: string, data: Uint8Array) => rowOf(leaseFields, decodeLease(id, data)),
  request: (id: string, data: Uint8Array) => rowOf(requestFields, decodeRequest(id, data)),
  node: (id: string, data: Uint8Array) =>
    rowOf(nodeFields, { record: decodeNode(id, data), locked: false, deadLetter: false }),
};

/**
 * Records of the tree and their changes as events. Of the nodes of a lease only the younger ones are read: older ones that are reused for
 * it appear when it is granted, and reading all of them would cost as much as a list. Of a record that cannot be read, which launchers report,
 * nothing but the id of a node is shown.
 */
async function* eventsOf(
  { tree }: OperationHandles,
  what: Followed,
  signal: AbortSignal,
): AsyncGenerator<YardEvent> {
  const roots: readonly (readonly [kind: keyof typeof READERS, root: string])[] =
    "node" in what
      ? [["node", paths.node(what.node)]]
      : [
          ["lease", leasePath(what.lease.id)],
          // Of a mixed set each part has one of its own.
          ...(what.lease.request === null ? [] : ([["request", paths.request(what.lease.request)]] as const)),
          ["node", paths.nodes],
        ];
  const found: object[] = [];
  let more = Promise.withResolvers<void>();
  const add = (event: object) => {
    found.push(event);
    more.resolve();
  };
  const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const feeds = roots.map(([kind, root]) => {
    const isWanted = (path: string) =>
      path === root
        ? root !== paths.nodes
        : "after" in what &&
          root === paths.nodes &&
          path.lastIndexOf("/") === root.length &&
          nameOf(path) > what.after;
    return tree.feed(root, {
      interest: (path) => (isWanted(path) ? "data" : "none"),
      onChange(change) {
        if (change.type !== "put" && change.type !== "remove") return;
        const id = nameOf(change.path);
        if (!isWanted(change.path)) return;
        if (change.type === "remove") return add({ type: "remove", kind, id });
        const { data } = change;
        const row =
          data && (readable(() => READERS[kind](id, data)) ?? (kind === "node" ? { id } : undefined));
        if (row !== undefined) add({ type: "put", kind, id, row });
      },
    });
  });
  let failed: { readonly error: unknown } | undefined;
  const fail = (error: unknown) => {
    failed ??= { error };
    more.resolve();
  };
  const stop = () => fail(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  Promise.all(feeds.map((feed) => feed.synced)).then(() => add({ type: "synced", complete: true }), fail);
  try {
    for (;;) {
      await more.promise;
      more = Promise.withResolvers();
      if (failed !== undefined) throw failed.error;
      yield* found.splice(0) as YardEvent[];
    }
  } finally {
    signal.removeEventListener("abort", stop);
    await Promise.all(feeds.map((feed) => feed.close()));
  }
}
