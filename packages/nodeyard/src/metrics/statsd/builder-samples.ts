import { keyPart, type StatsdSample } from "./lines.ts";

/** What a builder has to do with, in names. */
export interface BuilderFigures {
  readonly host: string;
  /** Builds and uploads under way here. */
  readonly work: readonly {
    readonly kind: "build" | "upload";
    readonly image: string;
    readonly provider: string | null;
  }[];
  /** Images that it builds, and whether they are paused. */
  readonly images: readonly { readonly image: string; readonly paused: boolean }[];
  /** Where it uploads them. */
  readonly uploads: readonly {
    readonly image: string;
    readonly provider: string;
    readonly paused: boolean;
  }[];
  /** Builds that are asked for and have not begun. */
  readonly requests: number;
}

/** 0 idle, 1 building, 2 uploading, 3 paused. */
const [IDLE, BUILDING, UPLOADING, PAUSED] = [0, 1, 2, 3] as const;

/**
 * A builder's own gauges (docs/contract/operations.md, "Figures of builders"); the last two were promised by its documentation
 * and never sent.
 */
export function builderSamples({
  host,
  work,
  images,
  uploads,
  requests,
}: BuilderFigures): readonly StatsdSample[] {
  const own = `nodepool.builder.${keyPart(host)}`;
  const gauge = (key: string, value: number): StatsdSample => ({ key, type: "g", value });
  const under = (kind: "build" | "upload") => work.filter((one) => one.kind === kind);
  const builds = new Set(under("build").map(({ image }) => image));
  const sent = new Set(under("upload").map(({ image, provider }) => `${image}/${provider}`));
  return [
    gauge("nodepool.image_build_requests", requests),
    ...images.map(({ image, paused }) =>
      gauge(
        `${own}.image.${keyPart(image)}.build.state`,
        builds.has(image) ? BUILDING : paused ? PAUSED : IDLE,
      ),
    ),
    ...uploads.map(({ image, provider, paused }) =>
      gauge(
        `${own}.image.${keyPart(image)}.provider.${keyPart(provider)}.upload.state`,
        sent.has(`${image}/${provider}`) ? UPLOADING : paused ? PAUSED : IDLE,
      ),
    ),
    gauge(`${own}.current_builds`, under("build").length),
    gauge(`${own}.current_uploads`, under("upload").length),
  ];
}
