import type { ImageSettings } from "@nodeyard/config";
import { notReady } from "@nodeyard/coordination";
import { firstLine, type ImageBuildRecord, type StandingFact, standingFact } from "@nodeyard/model";
import type { StandingCode } from "@nodeyard/operations";
import { treeNow } from "@nodeyard/tree";
import { failuresInARow, newestFirst, timeOf, tryAgainAt } from "../core/when.ts";
import { buildChoice } from "./choices.ts";
import type { BuilderContext } from "./context.ts";
import type { PutOff } from "./outlook.ts";
import { endOfLog } from "./progress.ts";
import type { ClosedImageProvider } from "./providers.ts";

/** Reasons to put work off that are no fault: another builder is at it, or a decision under the lock says more. */
const CALM: ReadonlySet<string> = new Set(["busy", "gone", "back-off", "fresh", "paused", "no-formats"]);

/** What this builder reports of its images, and of itself. `putOff`: why work that is due is not begun. `stuck`: what does not go on. */
export function builderFacts(
  context: BuilderContext,
  hostname: string,
  closed: ReadonlyMap<string, ClosedImageProvider>,
  putOff: (key: string) => PutOff | undefined,
  stuck: string | undefined,
): readonly StandingFact[] {
  const { settings } = context;
  return [
    ...notReady("builder", hostname, stuck),
    ...[...closed].map(([provider, { since, error, nextTry }]) =>
      standingFact("builder", hostname, "degraded", "builder.provider-closed" satisfies StandingCode, {
        provider,
        since,
        cause: `${provider}: ${firstLine(error)}`,
        nextTry,
      }),
    ),
    ...[...settings.images.values()].flatMap((image) => [
      buildFact(context, image, putOff(image.name)),
      ...[...settings.uploads].flatMap(([provider, { images }]) =>
        images.has(image.name)
          ? (uploadFact(context, image.name, provider, putOff(`${image.name}/${provider}`)) ?? [])
          : [],
      ),
    ]),
  ];
}

/** How the builds of an image stand. One that failed beside a ready one degrades the image: that one is used on. */
function buildFact(context: BuilderContext, image: ImageSettings, putOff: PutOff | undefined): StandingFact {
  const now = treeNow(context);
  const builds = [...context.view.images.builds(image.name).values()];
  const isReady = builds.some(({ state }) => state === "ready");
  const bad = isReady ? "degraded" : "failing";
  const fact = (state: StandingFact["state"], code: StandingCode, more: Partial<StandingFact> = {}) =>
    standingFact("image", image.name, state, code, more);
  const failures = failuresInARow(builds, now);
  const choice = buildChoice(context, image, now);
  if (failures.length > 0)
    return fact(bad, "image.build-failed", {
      since: timeOf(failures.at(-1)!),
      cause: causeOf(context, image.name, failures[0]!),
      nextTry: choice.build ? null : (choice.at ?? null),
    });
  if (putOff !== undefined && !CALM.has(putOff.why))
    return fact(bad, "image.put-off", { cause: firstLine(putOff.why), nextTry: Math.round(putOff.at) });
  if (!choice.build && choice.why === "paused") return fact(isReady ? "good" : "unknown", "image.paused");
  return isReady ? fact("good", "image.ready") : fact("unknown", "image.unbuilt");
}

/** The newest upload of an image to a provider, if it failed, or cannot begin. */
function uploadFact(
  context: BuilderContext,
  image: string,
  provider: string,
  putOff: PutOff | undefined,
): StandingFact | undefined {
  const now = treeNow(context);
  const uploads = [...context.view.images.uploads(image)]
    .filter((one) => one.provider === provider)
    .map(({ record }) => record);
  const [newest] = newestFirst(uploads.filter(({ state }) => state === "ready" || state === "failed"));
  const state = uploads.some((one) => one.state === "ready") ? "degraded" : "failing";
  const fact = (more: Partial<StandingFact>) =>
    standingFact("image", image, state, "image.upload-failed" satisfies StandingCode, { provider, ...more });
  const cause = (text: string | undefined) => `to ${provider}: ${firstLine(text ?? "see the builder's log")}`;
  if (newest?.state === "failed")
    return fact({
      since: timeOf(newest),
      cause: cause(context.failures.get(`${image}/${provider}`)?.why),
      nextTry: Math.round(tryAgainAt([newest], now)),
    });
  if (putOff === undefined || CALM.has(putOff.why)) return undefined;
  return fact({ cause: cause(putOff.why), nextTry: Math.round(putOff.at) });
}

/** Why builds failed that a former process of this host made: their logs say it. */
export async function recallFailures(context: BuilderContext): Promise<void> {
  const { settings, view, failures } = context;
  for (const image of settings.images.keys()) {
    const [last] = failuresInARow(view.images.builds(image).values(), treeNow(context));
    const end = last && (await endOfLog(context, image, last.id));
    if (end !== undefined)
      failures.set(image, {
        build: last!.id,
        why: `its log ${end.log} ends: ${end.lines.findLast((line) => !line.startsWith("Exit code: "))}`,
      });
  }
}

/** Its builder knows why; of another builder's failure the record only tells where it was. */
function causeOf({ failures }: BuilderContext, image: string, { id, builder }: ImageBuildRecord): string {
  const known = failures.get(image);
  return known?.build === id
    ? firstLine(known.why)
    : `see the log of build ${id} at ${builder ?? "its builder"}`;
}
