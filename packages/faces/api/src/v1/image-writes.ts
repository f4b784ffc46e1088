import {
  checkExport,
  deleteBuild,
  deleteUpload,
  exportImages,
  importImages,
  pauseImage,
  requestBuild,
} from "@nodeyard/operations";
import { z } from "zod";
import { notFound } from "./problems.ts";
import { type Call, OPERATORS, type Route, route } from "./route.ts";

/** One part of a path in the tree: it must stay one. */
const imageName = z.object({
  id: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}$/)
    .describe("its name"),
});

/** Throws ApiError for an image that the tree does not have, so that a misspelt name is not accepted. */
function demandImage({ known, params }: Call<{ readonly id: string }>): string {
  if (known.view.images.get(params.id) === undefined) throw notFound(`diskimage ${params.id}`);
  return params.id;
}

/** Names of records of images, each one part of a path in the tree: without a slash, and not "." or "..". */
const builtName = z.string().regex(/^[^/.][^/]{0,199}$/);
const builtImage = { image: builtName, build: builtName.describe("without the image's name") };

/** What reading or writing all records of images costs, in calls of the caller's rate. */
const DATA_CALLS = 10;
/** Of an import, bytes: some 40,000 uploads. */
const MAX_IMPORT = 16 * 1_024 * 1_024;
const records = z.record(z.string(), z.string()).describe("what the tree has, as text, by path");

/**
 * Changes of diskimages, builds and uploads, by the operations of the command line: marks and requests in the tree, which
 * builders carry out.
 */
export const imageChanges: readonly Route[] = [
  route({
    id: "delete_build",
    method: "DELETE",
    path: "/v1/images/{image}/builds/{build}",
    summary: "Mark a build for deletion; builders delete its uploads, its files and its record",
    roles: OPERATORS,
    params: z.object(builtImage),
    status: 204,
    handle: async ({ params: { image, build }, known: { handles } }) => deleteBuild(handles, image, build),
  }),
  route({
    id: "delete_upload",
    method: "DELETE",
    path: "/v1/images/{image}/builds/{build}/uploads/{provider}/{upload}",
    summary:
      "Mark an upload for deletion; builders delete it at the provider, and upload the newest build again",
    roles: OPERATORS,
    params: z.object({ ...builtImage, provider: builtName, upload: builtName }),
    status: 204,
    handle: async ({ params, known: { handles } }) => deleteUpload(handles, params),
  }),
  route({
    id: "build_image",
    method: "POST",
    path: "/v1/images/{id}/build",
    summary: "Request a build of a diskimage; a builder carries it out",
    roles: OPERATORS,
    params: imageName,
    status: 204,
    handle: async (call) => requestBuild(call.known.handles, demandImage(call)),
  }),
  route({
    id: "export_image_data",
    method: "GET",
    path: "/v1/image-data",
    summary:
      "All records of images that a restore of the tree needs, as `nodeyard export-image-data` saves them",
    roles: OPERATORS,
    status: 200,
    reply: z.object({ records }),
    handle: async ({ known: { handles }, charge }) => {
      charge(DATA_CALLS);
      return { records: await exportImages(handles) };
    },
  }),
  route({
    id: "import_image_data",
    method: "POST",
    path: "/v1/image-data",
    summary: "Write such records back; refused while a builder runs. A second time changes nothing",
    roles: OPERATORS,
    body: z.strictObject({ records, why: z.string().max(1_000).optional().describe("for the audit") }),
    maxBody: MAX_IMPORT,
    status: 204,
    handle: async ({ body, known: { handles }, charge }) => {
      charge(DATA_CALLS);
      await importImages(handles, checkExport(body.records));
    },
  }),
  ...([true, false] as const).map((paused) =>
    route({
      id: paused ? "pause_image" : "unpause_image",
      method: "POST",
      path: `/v1/images/{id}/${paused ? "pause" : "unpause"}`,
      summary: paused ? "Pause builds of a diskimage; uploads continue" : "Resume builds of a diskimage",
      roles: OPERATORS,
      params: imageName,
      status: 204,
      handle: async (call) => pauseImage(call.known.handles, demandImage(call), paused),
    }),
  ),
];
