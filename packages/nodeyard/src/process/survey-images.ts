import { type AlienImage, alienImages, uploadKey } from "../builder/index.ts";
import { listUploads } from "../operations/index.ts";
import { type Answers, askClouds, type CloudQuestion } from "./ask-clouds.ts";

/** Images in clouds that carry a tag of ours, and that no upload stands for. Rejects with ProcessError. */
export function surveyImages(question: CloudQuestion): Promise<Answers<AlienImage>> {
  const { uploads } = question.config.builder;
  const isAsked = (name: string) => question.only === name || (uploads.get(name)?.images.size ?? 0) > 0;
  return askClouds(
    question,
    (_, { name }) => isAsked(name),
    async ({ provider, installation, resources }) => {
      const { items, skipped } = await listUploads(question.handles);
      const own = items.filter((upload) => upload.provider === provider);
      const known = new Set(own.map(({ build, record }) => uploadKey(build, provider, record.id)));
      // An upload whose record cannot be read is known by its path.
      for (const { path } of skipped) {
        const [, , , , , build = "", , at = "", , upload = ""] = path.split("/");
        known.add(uploadKey(build, at, upload));
      }
      return alienImages(provider, installation, resources, known);
    },
  );
}
