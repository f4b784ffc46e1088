import type { Visibility } from "./http/caller.ts";
import type { Work } from "./known.ts";

/** `GET /api/v1/builds`: what goes on now. The phase of a build is a line of its log, which may hold anything. */
export function workBody(work: readonly Work[], visibility: Visibility): object {
  return {
    v: 1,
    work: work.map(
      ({ kind, image, build, provider, phase, bytes, total, elapsedMs, bytesPerSecond, etaMs }) => ({
        kind,
        image,
        build,
        provider,
        phase: visibility === "all" || kind === "upload" ? phase : null,
        bytes: Math.round(bytes),
        total_bytes: total === null ? null : Math.round(total),
        bytes_per_second: Math.round(bytesPerSecond),
        elapsed_seconds: tenths(elapsedMs),
        eta_seconds: etaMs === null ? null : tenths(etaMs),
      }),
    ),
  };
}

function tenths(ms: number): number {
  return Math.round(ms / 100) / 10;
}
