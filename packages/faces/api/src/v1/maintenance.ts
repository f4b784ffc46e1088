import { eraseProvider, listImages, providerRecords, serversOf } from "@nodeyard/operations";
import {
  alienImageShape,
  differenceShape,
  imageStatusFields,
  objectOf,
  providerRecordsShape,
  rowOf,
  type Shape,
  schemaOf,
  skippedRecords,
} from "@nodeyard/operations/listing";
import { z } from "zod";
import { ApiError } from "./problems.ts";
import { type Call, OPERATORS, type Route, route } from "./route.ts";

/** What reading so many records of the tree itself costs, in calls of the caller's rate. */
const TREE_CALLS = 10;

/** One part of a path in the tree: it must stay one. */
const provider = z.object({
  id: z
    .string()
    .regex(/^[^/.][^/]{0,199}$/)
    .describe("its name; it need not be configured"),
});

/** When a build was requested, and whether a builder works on it, is not in the view: this list reads the tree, and is charged for it. */
const imageStatus = route({
  id: "list_image_status",
  method: "GET",
  path: "/v1/image-status",
  summary:
    "Pauses, requests for builds and trials of diskimages, as `nodeyard image-status` shows them; read from the tree",
  roles: OPERATORS,
  status: 200,
  reply: z.object({
    items: z.array(schemaOf(z, imageStatusFields)),
    skipped: skippedRecords(z),
  }),
  handle: async (call) => {
    call.charge(TREE_CALLS);
    const { items, skipped } = await listImages(call.known.handles);
    return { items: items.map((item) => rowOf(imageStatusFields, item)), skipped };
  },
});

/** For an operator who wants to know what an erase would remove. */
const info = route({
  id: "get_provider_records",
  method: "GET",
  path: "/v1/providers/{id}/records",
  summary: "What the tree has of a provider, configured or not, as `nodeyard info` shows it",
  roles: OPERATORS,
  params: provider,
  status: 200,
  reply: objectOf(providerRecordsShape)(z),
  handle: async (call) => {
    call.charge(TREE_CALLS);
    return providerRecords(call.known.handles, call.params.id);
  },
});

/** Never of a provider that is served, unless forced: its launchers would write the records again. Cannot be undone. */
const erase = route({
  id: "erase_provider",
  method: "POST",
  path: "/v1/providers/{id}/erase",
  summary: "Remove the records of a provider that no launcher serves; its cloud keeps what it has",
  roles: OPERATORS,
  params: provider,
  body: z.strictObject({
    force: z
      .boolean()
      .default(false)
      .describe("also of a provider that is served, and nodes that somebody has locked"),
    why: z.string().max(1_000).optional().describe("for the audit"),
  }),
  status: 200,
  reply: z.object({
    uploads: z.int().describe("records that were removed"),
    nodes: z.array(z.string()),
    kept: z.array(z.string()).describe("nodes that somebody has locked"),
  }),
  handle: async (call: Call<{ readonly id: string }, undefined, { readonly force: boolean }>) => {
    const { known, params, body } = call;
    call.charge(TREE_CALLS);
    // Launchers that serve the provider would write new records (docs/contract/operations.md, "Erase").
    const serving = body.force ? [] : await serversOf(known.handles, params.id);
    if (serving.length > 0)
      throw new ApiError(
        409,
        "api.provider_served",
        `${serving.join(", ")} serves provider ${params.id}, or still deletes its nodes; remove it from that configuration and wait until they are gone, or send "force": true`,
      );
    return eraseProvider(known.handles, params.id, { locked: body.force });
  },
});

/** Asking each cloud for all that it has, in calls. */
const SURVEY_CALLS = 50;

/** A list of what clouds have and no record stands for. */
function survey(name: string, what: "leaks" | "images", summary: string, item: Shape): Route {
  return route({
    id: `list_${name.replace("-", "_")}`,
    method: "GET",
    path: `/v1/${name}`,
    summary,
    roles: OPERATORS,
    query: z.strictObject({ provider: z.string().max(1_000).optional().describe("only this one") }),
    status: 200,
    reply: z.object({
      items: z.array(objectOf(item)(z)),
      failures: z
        .array(z.object({ provider: z.string(), error: z.string() }))
        .describe("providers whose cloud could not be asked"),
    }),
    handle: async (call) => {
      // Before the clouds are asked: callers that end the connection pay as well.
      call.charge(SURVEY_CALLS);
      const answer = await call.parts.sources.survey?.(what, call.query.provider);
      if (answer === undefined)
        throw new ApiError(503, "api.no_launcher", "no launcher runs in this process: call another one");
      return { items: answer.found, failures: answer.failures };
    },
  });
}

/** Both answer with the rows that the command line prints, and name the clouds that did not answer. */
const surveys = [
  survey(
    "cloud-leaks",
    "leaks",
    "What sweeps of this launcher's providers would do, as `nodeyard leaks` shows it; every cloud is asked",
    differenceShape,
  ),
  survey(
    "cloud-images",
    "images",
    "Images in clouds that no upload stands for, as `nodeyard alien-image-list` shows them; every cloud is asked",
    alienImageShape,
  ),
];

/** What the command line reads and changes of the tree itself and of clouds, for an operator at an address. */
export const maintenanceRoutes: readonly Route[] = [imageStatus, info, erase, ...surveys];
