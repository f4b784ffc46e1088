import { askBuildLog } from "@nodeyard/operations";
import { buildFields, type Row, rowOf, schemaOf, uploadFields } from "@nodeyard/operations/listing";
import type { View } from "@nodeyard/view";
import { z } from "zod";
import { shownProgress } from "../routes.ts";
import { type Collection, unscoped } from "./collection.ts";
import { seesAll, seesSecrets } from "./principal.ts";
import { notFound } from "./problems.ts";
import { ASK_CALLS } from "./provider-reads.ts";
import { type Call, OPERATORS, READERS, type Route, route } from "./route.ts";

/** `progress` is known for builds of this process alone. */
const builds: Collection = {
  name: "builds",
  about: "the builds of diskimages",
  roles: READERS,
  row: schemaOf(z, buildFields),
  key: "id",
  filters: ["id", "image", "state", "builder"],
  rows: (call) =>
    unscoped(call, ({ view }) =>
      [...view.images.names()].flatMap((image) => {
        const paused = view.images.get(image)?.paused ?? false;
        return [...view.images.builds(image).values()].map((record) => {
          const progress = progressOf(call, { image, build: record.id, provider: null });
          return rowOf(buildFields, { image, record, paused, progress });
        });
      }),
    ),
};

/**
 * How far this process is with a build, or with its upload to a provider; null where it does nothing for it. Other builders are
 * not asked: a list must not cost a question through the tree.
 */
function progressOf(
  { parts, principal }: Call,
  at: { readonly image: string; readonly build: string; readonly provider: string | null },
): Row | null {
  const found = parts.sources
    .work()
    ?.find(
      ({ image, build, provider }) => image === at.image && build === at.build && provider === at.provider,
    );
  return found === undefined ? null : shownProgress(found, seesSecrets(principal) ? "all" : "public");
}

const uploads: Collection = {
  name: "uploads",
  about: "the uploads of builds to providers",
  roles: READERS,
  row: schemaOf(z, uploadFields),
  key: "id",
  filters: ["id", "image", "build", "provider", "state"],
  rows: (call) =>
    unscoped(call, ({ view }) =>
      [...view.images.names()].flatMap((name) =>
        [...view.images.uploads(name)].map((upload) =>
          rowOf(uploadFields, { ...upload, progress: progressOf(call, upload) }),
        ),
      ),
    ),
};

/** Lists of diskimages and what becomes of them. */
export const imageLists: readonly Collection[] = [builds, uploads];

/** Of one part, bytes: what other builders say goes through the tree, where every byte may take six. */
const LOG_BYTES = 32_768;
/** Below what proxies wait for an answer. */
const LOG_WAIT_SECONDS = 25;

/** The log is read where the build ran: here, else by the builder that has it, through the tree, which is slower and takes no wait. */
const buildLog = route({
  id: "get_build_log",
  method: "GET",
  path: "/v1/builds/{id}/log",
  summary: "A part of the log of a build; to follow it, ask from `next` on with `wait_seconds`",
  // What a build writes may hold anything.
  roles: OPERATORS,
  params: z.object({ id: z.string().min(1).max(1_000) }),
  query: z.strictObject({
    from: z.coerce
      .number()
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe("byte; otherwise the end of the log is returned"),
    limit: z.coerce.number().int().min(4).max(LOG_BYTES).default(LOG_BYTES).describe("bytes"),
    wait_seconds: z.coerce
      .number()
      .int()
      .min(0)
      .max(LOG_WAIT_SECONDS)
      .default(0)
      .describe("how long to wait for more, while the build goes on in the process that is asked"),
  }),
  status: 200,
  reply: z.object({
    text: z.string(),
    from: z.int(),
    next: z.int().describe("where the next part begins"),
    size: z.int().describe("of the log by now, bytes"),
    ended: z.boolean().describe("the build has ended, and nothing comes after `size`"),
  }),
  handle: async (call) => {
    const { principal, params, query, known, parts } = call;
    const find = () => (seesAll(principal) ? buildIn(known.view, params.id) : undefined);
    const build = find();
    if (build === undefined) throw notFound(`builds ${JSON.stringify(params.id)}`);
    const { from, limit, wait_seconds } = query;
    const range = { image: build.image, build: build.record.id, limit, ...(from !== undefined && { from }) };
    // Read the state before the log, so that the log of an ended build is complete.
    const ended = build.record.state !== "building";
    const here = await parts.sources.buildLog(range, ended ? 0 : wait_seconds * 1_000);
    // The log lies on the disk of the builder that made it, which may be another process.
    if (here === undefined) call.charge(ASK_CALLS);
    const part = here ?? (await askBuildLog(known.handles, range));
    if (part === undefined)
      throw notFound(
        `log of build ${params.id}; ${build.record.builder ?? "its builder"} had it in build-log-dir`,
      );
    // Bytes that no character ends would be waited for for ever.
    return { ...part, next: ended && part.text === "" ? part.size : part.next, ended };
  },
});

/** A build by its id in the list, IMAGE-BUILD. Names of images may hold dashes, so the id alone does not say where the name ends. */
function buildIn(view: View, id: string) {
  for (const image of view.images.names()) {
    if (!id.startsWith(`${image}-`)) continue;
    const record = view.images.builds(image).get(id.slice(image.length + 1));
    if (record !== undefined) return { image, record };
  }
  return undefined;
}

export const imageRoutes: readonly Route[] = [buildLog];
