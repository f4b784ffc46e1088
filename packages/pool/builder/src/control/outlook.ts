import type { ImageOutlook } from "@nodeyard/asking";
import type { BuildCode, UploadCode } from "@nodeyard/operations";
import { treeNow } from "@nodeyard/tree";
import { failuresInARow, newestFirst, timeOf } from "../core/when.ts";
import { buildChoice, uploadChoice } from "./choices.ts";
import type { BuilderContext } from "./context.ts";
import { endOfLog, type Progress } from "./progress.ts";

/** Work that is due and was put off, by image or by image and provider. */
export interface PutOff {
  /** Milliseconds of tree time. */
  readonly at: number;
  readonly why: string;
}

type Facts = ImageOutlook["facts"];
/** What is said of one piece of work: a code, the facts behind it, and when it is looked at again. */
type Said<Code> = { readonly code: Code; readonly facts?: Facts; readonly nextTry?: number | undefined };

/**
 * What this builder would do for an image: for its build, and for its upload to each provider that lists it. For `explain`, by
 * the functions that the workers decide by. `putOff`: what the workers say of work that is due.
 */
export async function imageOutlooks(
  context: BuilderContext,
  image: string,
  putOff: (key: string) => PutOff | undefined,
): Promise<ImageOutlook[]> {
  const { settings, disk } = context;
  const now = treeNow(context);
  const build = stand(
    "build",
    image,
    null,
    await withLog(context, image, buildSaid(context, image, putOff(image), now)),
  );
  if (!settings.images.has(image)) return [build];
  const local = await disk.list();
  const listing = [...settings.uploads].filter(([, { images }]) => images.has(image));
  const uploads = listing.map(([provider]) => {
    const choice = uploadChoice(context, provider, image, local, now);
    const said = uploadSaid(context, { image, provider }, choice, putOff(`${image}/${provider}`));
    return stand("upload", image, provider, said);
  });
  return [build, ...uploads];
}

/** Of builds that failed: the log of the newest, if it is here, and how it ends. */
async function withLog(
  context: BuilderContext,
  image: string,
  said: Said<BuildCode>,
): Promise<Said<BuildCode>> {
  const [failed] = failuresInARow(context.view.images.builds(image).values(), treeNow(context));
  const end = failed && (await endOfLog(context, image, failed.id));
  return end === undefined
    ? said
    : { ...said, facts: { ...said.facts, log: end.log, last_lines: end.lines } };
}

function stand(
  kind: ImageOutlook["kind"],
  image: string,
  provider: string | null,
  { code, facts = {}, nextTry }: Said<string>,
): ImageOutlook {
  return { kind, image, provider, code, facts, nextTry: nextTry ?? null };
}

/** The code of the build: work in progress first, then what is due, then why it is not. */
function buildSaid(
  context: BuilderContext,
  name: string,
  putOff: PutOff | undefined,
  now: number,
): Said<BuildCode> {
  const { settings, view, progress } = context;
  const image = settings.images.get(name);
  if (image === undefined) return { code: "image.not-configured" };
  const work = progress.list().find((one) => one.kind === "build" && one.image === name);
  if (work !== undefined) return { code: "image.building", facts: workFacts(work) };
  const choice = buildChoice(context, image, now);
  const builds = [...view.images.builds(name).values()];
  if (choice.build && putOff === undefined) return { code: "image.due", facts: { cause: choice.cause } };
  // The time of a request is known only under the lock, where the back-off may still delay it.
  if (choice.build && putOff?.why !== "back-off")
    return {
      code: "image.put-off",
      facts: { cause: choice.cause, why: putOff?.why },
      nextTry: putOff?.at,
    };
  const nextTry = choice.build ? putOff?.at : choice.at;
  switch (choice.build ? "back-off" : choice.why) {
    case "paused":
      return { code: "image.paused", facts: { by: image.paused ? "the configuration" : "image-pause" } };
    case "no-formats":
      return { code: "image.no-formats" };
    case "fresh": {
      const [newest] = newestFirst(builds.filter(({ state }) => state === "ready"));
      const facts = { newest: newest?.id ?? null, rebuild_age_seconds: image.rebuildAgeMs / 1000 };
      return { code: "image.fresh", facts, nextTry };
    }
    case "back-off": {
      const failures = failuresInARow(builds, now);
      const facts = { failures: failures.length, failed_at: failures[0] && timeOf(failures[0]) };
      return { code: "image.back-off", facts, nextTry };
    }
  }
}

/** The code of one upload, in the same order. */
function uploadSaid(
  { progress, view }: BuilderContext,
  { image, provider }: { readonly image: string; readonly provider: string },
  choice: ReturnType<typeof uploadChoice>,
  putOff: PutOff | undefined,
): Said<UploadCode> {
  const work = progress.list().find((one) => one.image === image && one.provider === provider);
  if (work !== undefined) return { code: "upload.uploading", facts: workFacts(work) };
  if (choice === undefined) return { code: "upload.closed" };
  if (choice.upload) {
    const facts = { build: choice.build, format: choice.format };
    return putOff === undefined
      ? { code: "upload.due", facts }
      : { code: "upload.put-off", facts: { ...facts, why: putOff.why }, nextTry: putOff.at };
  }
  if (choice.why !== "back-off") return { code: `upload.${choice.why}`, nextTry: choice.at };
  const failed = [...view.images.uploads(image)].filter(
    (one) => one.provider === provider && one.record.state === "failed",
  );
  return { code: "upload.back-off", facts: { failures: failed.length }, nextTry: choice.at };
}

function workFacts({ build, phase, bytes, total, elapsedMs }: Progress): Facts {
  return { build, phase, bytes, total, seconds: Math.round(elapsedMs / 1000) };
}
