import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = new URL("../../../../../nodeyard/", import.meta.url);

/**
 * The pages of the documentation that is installed beside this program, by name: `how-to/install`, and `how-to` for the page of a folder. The
 * values are absolute paths: of the site in a built package, of the sources in a checkout. Empty where somebody removed them.
 */
export function installedPages(): ReadonlyMap<string, string> {
  const site = fileURLToPath(new URL("site/docs/", PACKAGE));
  const folder = existsSync(site) ? site : fileURLToPath(new URL("../../docs/", PACKAGE));
  const files = globSync("**/*.{html,md}", { cwd: folder }).sort();
  return new Map(
    files.map((file) => [file.replace(/\.\w+$/, "").replace(/(?<=.)\/README$/, ""), join(folder, file)]),
  );
}
