import type { Given, OperationId } from "@nodeyard/client";
import {
  askForNodes,
  checkExport,
  createToken,
  deleteBuild,
  deleteNode,
  deleteUpload,
  eraseProvider,
  exportImages,
  forgetNode,
  holdNode,
  importImages,
  knownProviders,
  type Listing,
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
  readLease,
  readNode,
  readStandings,
  registeredPools,
  releaseLease,
  requestBuild,
  retireNode,
  revokeToken,
} from "@nodeyard/operations";
import {
  accessFields,
  buildFields,
  type Fields,
  imageStatusFields,
  leaseFields,
  nodeFields,
  type Row,
  requestFields,
  rowOf,
  standingFields,
  tenantFields,
  tokenFields,
  uploadFields,
} from "@nodeyard/operations/listing";
import { defined } from "@nodeyard/runtime";
import { CommandError } from "../errors.ts";

/** Operations of REST v1 on the tree, by their names. */
export type Handlers = { readonly [Id in OperationId]?: (given: Given<Id>) => Promise<unknown> };

/** Those that change nothing. Undefined: there is no such thing. */
export function reads(handles: OperationHandles) {
  return {
    get_nodes: async ({ path: { id } }) => {
      const node = await listedNode(handles, id);
      return node && rowOf(nodeFields, node);
    },
    list_lease_nodes: async ({ path: { id } }) => {
      const nodes = (await readLease(handles, id))?.nodes ?? [];
      const records = await Promise.all(nodes.map((node) => readNode(handles, node)));
      // A node may be deleted between the grant and this read.
      return { items: records.flatMap((record) => (record ? rowOf(accessFields, record) : [])) };
    },
    get_provider_records: ({ path: { id } }) => providerRecords(handles, id),
    get_node_console: async ({ path: { id } }) => {
      const node = await readNode(handles, id);
      return node && (await import("./tree-asks.ts")).askConsole(handles, node);
    },
    export_image_data: async () => ({ records: await exportImages(handles) }),
  } satisfies Handlers;
}

/** Those that change something, in the name of `person`. */
export function changes(handles: OperationHandles, person: string) {
  return {
    create_lease: async ({
      body: { labels, for_seconds: seconds = 3_600, priority = "200", project, branch, same },
    }) => {
      const wish = {
        labels,
        owner: person,
        forMs: seconds * 1_000,
        priority,
        ...defined({ project, branch }),
        ...(same && { same: same.map(({ fact, labels: of = [] }) => ({ fact, labels: of })) }),
      };
      return rowOf(leaseFields, await askForNodes(handles, wish));
    },
    release_lease: async ({ path: { id }, body }) =>
      (await releaseLease(handles, id, { commit: body?.commit === true })) === "released" ? null : undefined,
    hold_node: ({ path: { id }, body: { why: comment, for_seconds: forSeconds = 0 } }) =>
      holdNode(handles, id, { comment, forSeconds }),
    delete_node: ({ path: { id }, query }) => deleteNode(handles, id, query?.now === "true"),
    forget_node: ({ path: { id } }) => forgetNode(handles, id),
    erase_provider: ({ path: { id }, body }) => eraseProvider(handles, id, { locked: body?.force === true }),
    build_image: ({ path: { id } }) => requestBuild(handles, id),
    pause_image: ({ path: { id } }) => pauseImage(handles, id, true),
    unpause_image: ({ path: { id } }) => pauseImage(handles, id, false),
    delete_build: ({ path: { image, build } }) => deleteBuild(handles, image, build),
    delete_upload: ({ path }) => deleteUpload(handles, path),
    import_image_data: ({ body: { records } }) => importImages(handles, checkExport(records)),
    retire_node: async ({ path: { id }, body }) => ({
      backing_node: await retireNode(handles, id, body?.why ?? "retired by hand"),
    }),
    create_token: async ({
      body: { name, role, labels = [], tenants = [], for_seconds: seconds = 7_776_000 },
    }) => {
      const wish = { name, role, labels, tenants, forMs: seconds * 1_000, by: person };
      const { text, token } = await createToken(handles, wish);
      return { name, token: text, expires: rowOf(tokenFields, token).expires };
    },
    revoke_token: ({ path: { name } }) => revokeToken(handles, name, person),
  } satisfies Handlers;
}

/** An operation that commands call. */
export type Served = keyof ReturnType<typeof reads> | keyof ReturnType<typeof changes>;

/** Rows of what an operation finds. */
async function rows<T>(fields: Fields<T>, found: Promise<Listing<T>>): Promise<Listing<Row>> {
  const { items, skipped } = await found;
  return { items: items.map((item) => rowOf(fields, item)), skipped };
}

/** The lists of REST v1 that commands print, read from the tree itself. */
export const lists = {
  list_nodes: (handles) => rows(nodeFields, listNodes(handles)),
  list_requests: (handles) => rows(requestFields, listRequests(handles)),
  list_leases: (handles) => rows(leaseFields, listLeases(handles)),
  list_builds: (handles) => rows(buildFields, listBuilds(handles)),
  list_uploads: (handles) => rows(uploadFields, listUploads(handles)),
  list_images: (handles) => rows(imageStatusFields, listImages(handles)),
  list_image_status: (handles) => rows(imageStatusFields, listImages(handles)),
  list_tokens: (handles) => rows(tokenFields, listTokens(handles)),
  // As launchers registered them, with capacity or without. Of Nodepool's launchers, too.
  async list_labels({ tree }) {
    const offers = (await registeredPools(tree)).flatMap(({ providerName, name, supportedLabels }) =>
      supportedLabels.map((label) => ({ label, pool: `${providerName ?? ""}/${name ?? ""}` })),
    );
    const items = [...Map.groupBy(offers, ({ label }) => label)].map(([label, pools]) => ({
      label,
      pools: pools.map(({ pool }) => pool),
    }));
    return { items, skipped: [] };
  },
  list_standings: async (handles) => {
    const items = (await readStandings(handles)).map((one) => rowOf(standingFields, one));
    return { items, skipped: [] };
  },
  list_tenants: async (handles) => {
    const { askTenants } = await import("./tree-asks.ts");
    const uses = await askTenants(handles);
    if (uses === undefined)
      throw new CommandError("cli.no_launcher", "no launcher answered, and only launchers know tenants");
    return { items: uses.map((one) => rowOf(tenantFields, one)), skipped: [] };
  },
  list_providers: async (handles) => {
    const items = (await knownProviders(handles)).map((provider) => ({ provider }));
    return { items, skipped: [] };
  },
} satisfies { readonly [Id in OperationId]?: (handles: OperationHandles) => Promise<Listing<Row>> };

/** A list that commands print. */
export type Listed = keyof typeof lists;
