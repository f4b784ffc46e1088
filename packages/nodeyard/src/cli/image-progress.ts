import type { ImageWork } from "../operations/index.ts";

const MB = 1_000_000;

/** How far a build or an upload is, in a line: what it is at, how much, how fast, how long it still takes. */
export function progressText({ phase, bytes, total, bytesPerSecond, etaMs, elapsedMs }: ImageWork): string {
  const size = total === null ? `${megabytes(bytes)} MB` : `${megabytes(bytes)} of ${megabytes(total)} MB`;
  const rate = `${(bytesPerSecond / MB).toFixed(1)} MB/s`;
  const eta = etaMs === null ? "" : `, ${minutes(etaMs)} left`;
  return `${minutes(elapsedMs)}: ${phase}; ${size}, ${rate}${eta}`;
}

function megabytes(bytes: number): string {
  return (bytes / MB).toFixed(0);
}

function minutes(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
