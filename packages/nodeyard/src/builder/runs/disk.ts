import type { ImageSettings } from "../../config/index.ts";
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
  readonly base: string;
  readonly intent: Intent;
  /** Formats whose file is here. */
  readonly formats: readonly string[];
}

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
  list(): Promise<readonly LocalBuild[]>;
  /** Stored durably before it resolves; makes the work folder. */
  begin(intent: Intent): Promise<void>;
  /** Proves ownership of files that an old builder of this host made. False: there are none. */
  adopt(intent: Intent): Promise<boolean>;
  /** A digest of an image's sources. */
  sources(image: ImageSettings, elementsDir: string | null): Promise<string>;
  /** Starts a command of a build, whose output is added to `log`. */
  start(command: BuildCommand, intent: Intent, log: string): Promise<Running>;
  /** The formats whose files are missing or empty; the others are on the disk for good. */
  settle(base: string, formats: readonly string[]): Promise<readonly string[]>;
  /** Removes the leftovers of a build: marked processes, mounts and loop devices beneath its folders, and the work folder. */
  reclaim(intent: Intent): Promise<void>;
  /** Removes all files of a build, the intent last. Twice: nothing. */
  remove(base: string): Promise<void>;
  removeFormats(base: string, formats: readonly string[]): Promise<void>;
  /** Sums come from the files beside it, or are computed. */
  describe(base: string, format: string, signal: AbortSignal): Promise<FileFacts>;
  /** Bytes that the files and the work folder of a build take by now. */
  used(intent: Intent): Promise<number>;
  /** Bytes that the file of one format really takes. */
  allocated(base: string, format: string): Promise<number>;
  free(): Promise<number>;
  /** Makes room for a new, empty log and returns its path. */
  newLog(folder: string, image: string, build: string, keep: number): Promise<string>;
  appendLog(path: string, line: string): Promise<void>;
  /** The end of a text, for progress and for why it failed. */
  tail(path: string): Promise<string>;
  /** Runs `<hook> <args>` without a shell and gives its exit code and output. */
  hook(
    path: string,
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly code: number; readonly output: string }>;
}
