import type { ImageWork } from "@nodeyard/asking";
import type { Clock } from "@nodeyard/runtime";
import { logPath } from "../core/files.ts";
import type { Disk } from "../runs/disk.ts";

/** Of a log of a build that failed, for people. */
const [LAST_LINES, MOST_CHARACTERS] = [10, 300] as const;

/**
 * How far a build or an upload is: since its start, its rate the mean over the whole time. Rates that change, as of a build, make
 * the time that is left a guess.
 */
export type Progress = Readonly<ImageWork>;

type What = Pick<Progress, "kind" | "image" | "build" | "provider">;

interface Entry extends What {
  readonly since: number;
  phase: string;
  bytes: number;
  total: number | null;
}

/** The entry of one build or upload, for the code that does it. `end` has to be called, whatever happens. */
export interface Page {
  update(facts: { readonly phase?: string; readonly bytes?: number; readonly total?: number | null }): void;
  end(): void;
}

/** Builds and uploads in progress in this process, in memory alone: read by figures, logs, `explain` and the API. */
export class ProgressTable {
  readonly #clock: Clock;
  readonly #entries = new Set<Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins an entry. */
  open(what: What): Page {
    const entry: Entry = { ...what, since: this.#clock.monotonic(), phase: "start", bytes: 0, total: null };
    this.#entries.add(entry);
    return {
      update: (facts) => void Object.assign(entry, facts),
      end: () => void this.#entries.delete(entry),
    };
  }

  /** All entries, the oldest first. */
  list(): readonly Progress[] {
    const now = this.#clock.monotonic();
    return [...this.#entries].map(({ since, ...entry }) => {
      const elapsedMs = now - since;
      const bytesPerSecond = elapsedMs <= 0 ? 0 : (entry.bytes * 1000) / elapsedMs;
      const left = entry.total === null ? null : Math.max(0, entry.total - entry.bytes);
      const etaMs = left === null || bytesPerSecond === 0 ? null : (left * 1000) / bytesPerSecond;
      return { ...entry, elapsedMs, bytesPerSecond, etaMs };
    });
  }
}

/**
 * What a build is at: the last line of its log that says something, without the time stamp of diskimage-builder; 120 characters
 * at most.
 */
export function phaseIn(tail: string): string {
  return saidIn(tail).at(-1)?.slice(0, 120) ?? "running";
}

/** The lines of a log that say something, without time stamps. */
function saidIn(tail: string): readonly string[] {
  const lines = tail.split(/[\r\n]+/).map((line) => line.replace(/^\d{4}-\d\d-\d\d [\d:.,]+ \| /, "").trim());
  // A shell that traces itself says how, not what.
  return lines.filter((line) => line !== "" && !/^\++ /.test(line));
}

/** Where the log of a build is on this host, and the last lines of it that say something; undefined: it is not here. */
export async function endOfLog(
  { disk, settings }: { readonly disk: Disk; readonly settings: { readonly logDir: string } },
  image: string,
  build: string,
): Promise<{ readonly log: string; readonly lines: readonly string[] } | undefined> {
  const log = logPath(settings.logDir, image, build);
  // The first line that was read may be cut.
  const lines = saidIn(await disk.tail(log))
    .slice(-LAST_LINES)
    .map((line) => line.replace(/\p{Cc}/gu, " ").slice(0, MOST_CHARACTERS));
  return lines.length === 0 ? undefined : { log, lines };
}
