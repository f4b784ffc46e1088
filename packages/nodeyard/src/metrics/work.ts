import { type Gauge, gaugeOf } from "./gauges.ts";

/** A build or an upload under way in this process. */
export interface WorkFigures {
  readonly kind: "build" | "upload";
  readonly image: string;
  readonly provider: string | null;
  readonly phase: string;
  readonly bytes: number;
  readonly total: number | null;
  readonly elapsedMs: number;
  readonly bytesPerSecond: number;
  readonly etaMs: number | null;
}

/**
 * How far it is. Of one image there is one build at a time, and one upload to a provider, so the build's id is no label. The phase of a
 * build is a line of its log: no value for a label, since there would be a new series with each line; it is in the API.
 */
export function workGauges(work: readonly WorkFigures[]): readonly Gauge[] {
  return work.flatMap(({ kind, image, provider, phase, bytes, total, elapsedMs, bytesPerSecond, etaMs }) => {
    const labels = [kind, image, provider ?? ""];
    return [
      gaugeOf("work_bytes", bytes, ...labels),
      ...(total === null ? [] : [gaugeOf("work_expected_bytes", total, ...labels)]),
      gaugeOf("work_bytes_per_second", bytesPerSecond, ...labels),
      gaugeOf("work_elapsed_seconds", elapsedMs / 1000, ...labels),
      ...(etaMs === null ? [] : [gaugeOf("work_remaining_seconds", etaMs / 1000, ...labels)]),
      ...(kind === "upload" ? [gaugeOf("work_step", 1, ...labels, phase)] : []),
    ];
  });
}
