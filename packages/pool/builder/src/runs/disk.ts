import type { ImageSettings } from "@nodeyard/config";
import type { BuildCommand } from "./back-ends.ts";

/** Written before anything of a build is made: what proves that its files, folder and processes are ours. */
export interface Intent {
  readonly v: 1;
  /** UUID of the installation: another tree's builder leaves the files alone. */
  readonly installation: string;
  readonly image: string;
  readonly build: string;
  /** The folder for temporary files. */
  readonly work: string;
  /** The digest of its sources, if the image is rebuilt on change. */
  readonly sources?: string;
}

/** A build on this host. */
export interface LocalBuild {
  /** Name of its files without their suffix. */
  readonly base: string;
  readonly intent: Intent;
  /** Formats whose file is here. */
  readonly formats: readonly string[];
}

/** How a program ended. */
export interface RunEnd {
  /** Negative for a signal, as Python tells it. */
  readonly code: number;
}

/** A program that runs for a build. */
export interface Running {
  readonly ended: Promise<RunEnd>;
  /** Ends the whole process tree at once; `ended` settles when it is gone. */
  kill(): void;
}

/** A finished file of a build, as it goes into the record and to clouds. */
export interface FileFacts {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly md5: string;
  readonly sha256: string;
}

/** The image files of this host, and the programs that run on it. Rejects with errors of the system. */
export interface Disk {
  /** `<images-dir>`, absolute. */
  readonly folder: string;
  /** Reads `builder_id.txt`, or makes it. */
  builderId(random: { uuid(): string }): Promise<string>;
  /** All builds with a sound intent, of other installations, too. */
  list(): Promise<readonly LocalBuild[]>;
  /** Stored durably before it resolves; makes the work folder. */
  begin(intent: Intent): Promise<void>;
  /** Proves ownership of files that an old builder of this host made. False: there are none. */
  adopt(intent: Intent): Promise<boolean>;
  /** A digest of an image's sources. */
  sources(image: ImageSettings, elementsDir: string | null): Promise<string>;
  /** Starts a command of a build in its work folder; its output is added to `log`. */
  start(command: BuildCommand, intent: Intent, log: string): Promise<Running>;
  /**
   * The formats whose files are missing or empty; the others are on the disk for good, so that a record that says `ready`
   * outlives a loss of power.
   */
  settle(base: string, formats: readonly string[]): Promise<readonly string[]>;
  /** Removes the leftovers of a build: marked processes, mounts and loop devices beneath its folders, and the work folder. */
  reclaim(intent: Intent): Promise<void>;
  /** Removes all files of a build, the intent last. Twice: nothing. */
  remove(base: string): Promise<void>;
  /** Removes files of these formats with their sums; the rest of the build stays. */
  removeFormats(base: string, formats: readonly string[]): Promise<void>;
  /**
   * Sums come from the files beside it, or are computed, which reads the whole file. Rejects when `signal` aborts, or the file is
   * missing.
   */
  describe(base: string, format: string, signal: AbortSignal): Promise<FileFacts>;
  /** Bytes that the files of a build take by now, without its work folder. */
  used(intent: Intent): Promise<number>;
  /** Bytes that the file of one format really takes. */
  allocated(base: string, format: string): Promise<number>;
  /** Bytes that this user can still write to `folder`. */
  free(): Promise<number>;
  /** Makes a new, empty log and returns its path; of former logs of the image the newest `keep` stay. */
  newLog(folder: string, image: string, build: string, keep: number): Promise<string>;
  appendLog(path: string, line: string): Promise<void>;
  /** The end of a text, for progress and for why it failed; "" where there is none. */
  tail(path: string): Promise<string>;
  /** Runs `<hook> <args>` without a shell and gives its exit code and output. */
  hook(
    path: string,
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly code: number; readonly output: string }>;
}
