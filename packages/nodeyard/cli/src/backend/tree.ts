import { LEASES, paths, STANDINGS } from "@nodeyard/model";
import {
  askForNodes,
  createToken,
  deleteBuild,
  deleteNode,
  deleteUpload,
  eraseProvider,
  exportImages,
  followLease,
  followNodes,
  forgetNode,
  holdNode,
  importImages,
  isKnownImage,
  knownProviders,
  listBuilds,
  listedNode,
  listImages,
  listLeases,
  listNodes,
  listRequests,
  listTokens,
  listUploads,
  type OperationHandles,
  pauseImage,
  providerRecords,
  readNode,
  readStandings,
  registeredPools,
  releaseLease,
  requestBuild,
  retireNode,
  revokeToken,
  treeNow,
  youngestNode,
} from "@nodeyard/operations";
import {
  ageIn,
  buildRow,
  imageRow,
  nodeRow,
  requestRow,
  standingRow,
  uploadRow,
} from "@nodeyard/operations/listing";
import { leaseRow } from "../rows.ts";
import type { Ages, Backend, ListName, Rows, Watched } from "./backend.ts";

/** The paths beneath which each list changes. */
const ROOTS: Readonly<Record<Watched, string>> = {
  nodes: paths.nodes,
  requests: paths.requests,
  leases: LEASES,
  images: paths.images,
  standings: STANDINGS,
};

/**
 * Commands on the tree itself. `journal`: the file of this machine, which `explain` reads too. Whoever reaches the tree may do
 * everything: rights are checked by servers alone.
 */
export function treeBackend(handles: OperationHandles, journal: string): Backend {
  const { tree } = handles;
  return {
    now: () => treeNow(handles),
    list: (name, ages) => list(handles, name, ages),
    async node(id, ages) {
      const node = await listedNode(handles, id);
      return node && nodeRow(node, treeNow(handles), ages);
    },
    pools: async () =>
      (await registeredPools(tree)).map(({ providerName, name, supportedLabels }) => ({
        provider: providerName ?? "",
        pool: name ?? "",
        labels: supportedLabels,
      })),
    providers: () => knownProviders(handles),
    async image(name) {
      if (!(await isKnownImage(handles, name))) return undefined;
      const { items } = await listImages(handles);
      return { paused: items.some(({ image, paused }) => image === name && paused) };
    },
    async builds(image) {
      const { items } = await listBuilds(handles);
      return items.filter((one) => one.image === image).map(({ record }) => record);
    },
    async buildProgress(image, build) {
      // Loaded only here: other commands ask no members.
      const { imageWork } = await import("./tree-asks.ts");
      return (await imageWork(handles, image)).find((work) => work.build === build);
    },
    providerRecords: (name) => providerRecords(handles, name),
    async explain(subject) {
      const { explainByTree } = await import("./tree-asks.ts");
      return explainByTree(handles, journal, subject);
    },
    async console(id) {
      const node = await readNode(handles, id);
      return node && (await import("./tree-asks.ts")).askConsole(handles, node);
    },
    watch(what, onChange) {
      // Of a lock only whether it is held is shown.
      const interest = (path: string) => (/\/lock(\/|$)/.test(path) ? "name" : "data");
      // One feed for each list; the first walk of each calls `onChange` for what is there.
      const feeds = what.map((name) => tree.feed(ROOTS[name], { interest, onChange }));
      return { close: async () => void (await Promise.all(feeds.map((feed) => feed.close()))) };
    },

    async request(options) {
      // Before the lease is written: a node that a launcher makes for it at once is younger than this one.
      const youngest = await youngestNode(handles);
      const lease = await askForNodes(handles, options);
      return { lease, follow: (onChange) => followLease(handles, lease, youngest, onChange) };
    },
    async access({ nodes }) {
      // A node may be deleted between the grant and this read.
      const records = await Promise.all(nodes.map((id) => readNode(handles, id)));
      return records.filter((record) => record !== undefined);
    },
    release: (lease) => releaseLease(handles, lease),
    onConnection: (fn) => tree.onSession(({ state }) => fn(state)),

    hold: (node, options) => holdNode(handles, node, options),
    deleteNode: (node, now) => deleteNode(handles, node, now),
    forgetNode: (node) => forgetNode(handles, node),
    untilGone: (node) => followNodes(tree, [node], () => false),
    erase: (provider, force) => eraseProvider(handles, provider, { locked: force }),
    requestBuild: (image) => requestBuild(handles, image),
    pauseImage: (image, paused) => pauseImage(handles, image, paused),
    exportImages: () => exportImages(handles),
    importImages: (all) => importImages(handles, all),
    deleteBuild: (image, build) => deleteBuild(handles, image, build),
    deleteUpload: (at) => deleteUpload(handles, at),
    retire: (node, why) => retireNode(handles, node, why),

    tokens: () => listTokens(handles),
    async createToken(wanted) {
      const { text, token } = await createToken(handles, wanted);
      return { text, expires: token.expires };
    },
    revokeToken: async (name, by) => void (await revokeToken(handles, name, by)),
  };
}

/** Reads the tree itself on each call. The time is taken after the records: the age of one that changed meanwhile would be negative. */
async function list(handles: OperationHandles, name: ListName, ages: Ages): Promise<Rows> {
  switch (name) {
    case "nodes": {
      const { items, skipped } = await listNodes(handles);
      const now = treeNow(handles);
      return { rows: items.map((item) => nodeRow(item, now, ages)), skipped };
    }
    case "leases": {
      const { items, skipped } = await listLeases(handles);
      const now = treeNow(handles);
      return { rows: items.map((lease) => leaseRow(lease, now, ages)), skipped };
    }
    case "requests": {
      const { items, skipped } = await listRequests(handles);
      const now = treeNow(handles) / 1000;
      const rows = items.map((record) => ({
        ...requestRow(record),
        age: record.stateTime === null ? null : ageIn("seconds", now - record.stateTime),
        created: record.createdTime ?? record.stateTime,
      }));
      return { rows, skipped };
    }
    case "uploads": {
      const { items, skipped } = await listUploads(handles);
      return { rows: items.map((item) => uploadRow(item, handles, ages)), skipped };
    }
    case "images": {
      const { items, skipped } = await listImages(handles);
      const now = treeNow(handles);
      return { rows: items.map((item) => imageRow(item, now, ages)), skipped };
    }
    case "standings":
      return { rows: (await readStandings(handles)).map(standingRow), skipped: [] };
    case "builds": {
      const { items, skipped } = await listBuilds(handles);
      return { rows: items.map((item) => buildRow(item, handles, ages)), skipped };
    }
  }
}
