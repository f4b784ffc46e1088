import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import type { Finding } from "../findings.ts";
import { LINES_FAIL, LINES_WARN } from "../rules.ts";
import type { Workspace } from "../workspace.ts";

const KEBAB_FILE = /^[a-z0-9]+(-[a-z0-9]+)*(\.(test|bench|d|schema))*\.tsx?$/;
const KEBAB_FOLDER = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/** Length and name of files, doors and READMEs of packages. */
export function checkShape(workspace: Workspace): Finding[] {
  return [...lengths(workspace), ...names(workspace), ...doors(workspace)];
}

function lengths({ files }: Workspace): Finding[] {
  return files.flatMap((file) => {
    if (file.lines <= LINES_WARN) return [];
    const long = file.lines > LINES_FAIL;
    const limit = long ? LINES_FAIL : LINES_WARN;
    const message = `${file.lines} lines, more than ${limit}; one purpose per file`;
    return [{ rule: "length", severity: long ? "error" : "warning", path: file.path, message }];
  });
}

function names({ files }: Workspace): Finding[] {
  return files.flatMap(({ path }) => {
    const folders = path.split("/").slice(0, -1);
    const bad = folders.find((folder) => !KEBAB_FOLDER.test(folder));
    const wrong = bad ?? (KEBAB_FILE.test(basename(path)) ? undefined : basename(path));
    return wrong === undefined ? [] : [error("name", path, `${wrong} is not in kebab-case`)];
  });
}

function doors({ root, packages }: Workspace): Finding[] {
  return packages.flatMap(({ folder, manifest }) => {
    const missing = ["src/index.ts", "README.md"].filter((name) => !existsSync(join(root, folder, name)));
    const targets = Object.entries(manifest.exports ?? {});
    const gone = targets.filter(
      ([, path]) => typeof path === "string" && !existsSync(join(root, folder, path)),
    );
    return [
      ...missing.map((name) => error("door", folder, `has no ${name}`)),
      ...gone.map(([door, path]) =>
        error("door", folder, `exports ${door} from ${path}, which does not exist`),
      ),
    ];
  });
}

function error(rule: string, path: string, message: string): Finding {
  return { rule, severity: "error", path, message };
}
