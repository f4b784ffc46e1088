import { type ImageBuildState, imageBuildStates, imageUploadStates } from "@nodeyard/model";
import type { View } from "../view/index.ts";
import { type Gauge, gaugeOf } from "./gauges.ts";

/** Diskimages in numbers: images are few, so they are looked through when somebody asks. */
export function imageGauges({ images }: View): readonly Gauge[] {
  return [...images.names()].flatMap((image) => {
    const builds = [...images.builds(image).values()];
    const building = builds.some(({ state }) => state === "building");
    const ready = newest(builds.filter(({ state }) => state === "ready"));
    return [
      ...imageBuildStates.map((state) => gaugeOf("image_builds", count(builds, state), image, state)),
      gaugeOf("image_build_requested", images.requested(image) && !building ? 1 : 0, image),
      gaugeOf("image_paused", images.get(image)?.paused === true ? 1 : 0, image),
      ...(ready === undefined ? [] : [gaugeOf("image_last_build_timestamp_seconds", ready, image)]),
      ...uploadGauges(image, [...images.uploads(image)]),
    ];
  });
}

function uploadGauges(
  image: string,
  uploads: readonly { readonly provider: string; readonly record: Timed & { readonly state: string } }[],
): readonly Gauge[] {
  return [...new Set(uploads.map(({ provider }) => provider))].flatMap((provider) => {
    const own = uploads.filter((upload) => upload.provider === provider).map(({ record }) => record);
    const ready = newest(own.filter(({ state }) => state === "ready"));
    return [
      ...imageUploadStates.map((state) =>
        gaugeOf(
          "image_uploads",
          own.filter((record) => record.state === state).length,
          image,
          provider,
          state,
        ),
      ),
      ...(ready === undefined
        ? []
        : [gaugeOf("image_last_upload_timestamp_seconds", ready, image, provider)]),
    ];
  });
}

interface Timed {
  readonly stateTime: number | null;
}

function count(builds: readonly { readonly state: ImageBuildState }[], state: ImageBuildState): number {
  return builds.filter((build) => build.state === state).length;
}

function newest(records: readonly Timed[]): number | undefined {
  const times = records.map(({ stateTime }) => stateTime).filter((time) => time !== null);
  return times.length === 0 ? undefined : Math.max(...times);
}
