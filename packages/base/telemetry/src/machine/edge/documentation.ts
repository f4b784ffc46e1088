import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** In a built package, where this file is one of `src/telemetry`. */
const SITE = fileURLToPath(new URL("../../../../site/docs/", import.meta.url));
const SOURCES = fileURLToPath(new URL("../../../../../../docs/", import.meta.url));

/**
 * The pages of the documentation that is installed beside this program, by name: `how-to/install`, and `how-to` for the page of a folder. The
 * values are absolute paths: of the site in a built package, of the sources in a checkout. Empty where somebody removed them.
 */
export function installedPages(): ReadonlyMap<string, string> {
  const folder = existsSync(SITE) ? SITE : SOURCES;
  const files = globSync("**/*.{html,md}", { cwd: folder }).sort();
  return new Map(
    files.map((file) => [file.replace(/\.\w+$/, "").replace(/(?<=.)\/README$/, ""), join(folder, file)]),
  );
}
