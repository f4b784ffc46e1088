import { buildRow, type Row } from "../../listing/index.ts";
import { workRow } from "../routes.ts";
import { type Collection, gather, unscoped } from "./collection.ts";
import { seesSecrets } from "./principal.ts";
import { type Call, READERS } from "./route.ts";
import { imageRowOf, isoOf } from "./rows.ts";
import { buildSchema, imageSchema, uploadSchema } from "./schemas.ts";

const images: Collection = {
  name: "images",
  about: "the diskimages that the tree knows",
  roles: READERS,
  row: imageSchema,
  key: "image",
  filters: ["image"],
  rows: (call) =>
    unscoped(call, ({ view }) => gather(view.images.names(), (image) => imageRowOf(view, image))),
};

const builds: Collection = {
  name: "builds",
  about: "the builds of diskimages",
  roles: READERS,
  row: buildSchema,
  key: "id",
  filters: ["id", "image", "state", "builder"],
  rows: (call) =>
    unscoped(call, ({ view, handles }) =>
      [...view.images.names()].flatMap((image) => {
        const paused = view.images.get(image)?.paused ?? false;
        return [...view.images.builds(image).values()].map((record) => {
          const { age: _, ...row } = buildRow({ image, record, paused }, handles, "epoch");
          const progress = progressOf(call, { image, build: record.id, provider: null });
          return { ...row, since: isoOf(record.stateTime), progress };
        });
      }),
    ),
};

/** How far this process is with a build, or with its upload to a provider; null where it does nothing for it. */
function progressOf(
  { parts, principal }: Call,
  at: { readonly image: string; readonly build: string; readonly provider: string | null },
): Row | null {
  const found = parts.sources
    .work()
    ?.find(
      ({ image, build, provider }) => image === at.image && build === at.build && provider === at.provider,
    );
  if (found === undefined) return null;
  const {
    kind: _,
    image,
    build,
    provider,
    ...progress
  } = workRow(found, seesSecrets(principal) ? "all" : "public");
  return progress;
}

const uploads: Collection = {
  name: "uploads",
  about: "the uploads of builds to providers",
  roles: READERS,
  row: uploadSchema,
  key: "id",
  filters: ["id", "image", "build", "provider", "state"],
  rows: (call) =>
    unscoped(call, ({ view }) =>
      [...view.images.names()].flatMap((name) =>
        [...view.images.uploads(name)].map(({ image, build, provider, record }) => ({
          // The number alone repeats with each build and provider.
          id: `${image}-${build}/${provider}/${record.id}`,
          image,
          build,
          provider,
          upload: record.id,
          external_name: record.externalName,
          external_id: record.externalId,
          state: record.state,
          since: isoOf(record.stateTime),
          progress: progressOf(call, { image, build, provider }),
        })),
      ),
    ),
};

/** Lists of diskimages and what becomes of them. */
export const imageLists: readonly Collection[] = [images, builds, uploads];
