import type { ImageSettings } from "../../config/index.ts";

/** One build, for a back end to turn into a command. */
export interface BuildOrder {
  readonly image: ImageSettings;
  readonly build: string;
  /** Path of the results without their suffix: `<images-dir>/<image>-<build>`. */
  readonly base: string;
  readonly formats: readonly string[];
  /** A folder of this build alone, for all that is temporary; removed when the build has ended. */
  readonly work: string;
  readonly elementsDir: string | null;
}

/** What is run. Exit code 0 promises `<base>.<format>` for each format. */
export interface BuildCommand {
  readonly argv: readonly string[];
  /** Added to the builder's own environment; undefined: taken out of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Marks every process of a build, whatever it is called: children inherit it. */
export const MARK = "NODEYARD_BUILD";
