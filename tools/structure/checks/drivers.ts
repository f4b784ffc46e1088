import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import type { Finding } from "../findings.ts";
import { DRIVER_FILES, DRIVER_FOLDER, DRIVERS_NEVER_IMPORT, matches } from "../rules.ts";
import {
  isRelative,
  type Manifest,
  resolveRelative,
  type SourceFile,
  splitSpecifier,
  type Workspace,
} from "../workspace.ts";
import { checkEffects } from "./effects.ts";

const KIT = "@nodeyard/driver-testkit";
/** Its machines are claims in the tree, which a launcher makes and ends: `launcher/test/metastatic` has its tests. */
const TRIED_BY_LAUNCHER = "packages/drivers/metastatic";

/**
 * All drivers have the same shape, those of this repository and the examples: fixed files, so that a reader knows the path; the one
 * conformance suite; no import of launcher code or of undeclared packages.
 */
export function checkDrivers(workspace: Workspace): Finding[] {
  const folders = new Set(workspace.files.flatMap(({ path }) => DRIVER_FOLDER.exec(path)?.[0] ?? []));
  return [...folders].sort().flatMap((folder) => {
    const files = workspace.files.filter(({ path }) => path.startsWith(`${folder}/`));
    const src = files.filter(({ path }) => path.startsWith(`${folder}/src/`));
    return [
      ...roles(workspace, folder),
      ...(folder === TRIED_BY_LAUNCHER ? [] : conformance(folder, files)),
      ...src.flatMap((file) => imports(file, folder, manifestOf(workspace, folder))),
      // Drivers in packages are checked anyway.
      ...(folder.startsWith("packages/")
        ? []
        : checkEffects({ ...workspace, files: src.map((file) => ({ ...file, part: "src" as const })) })),
    ];
  });
}

function roles({ root }: Workspace, folder: string): Finding[] {
  const missing = DRIVER_FILES.filter((name) => !existsSync(join(root, folder, name)));
  return missing.map((name) => error(folder, `has no ${name}; every driver has one`));
}

/** Its own test runs the shared suite: with a copy of it, a driver could pass tests that it wrote itself. */
function conformance(folder: string, files: readonly SourceFile[]): Finding[] {
  const imported = files.some(
    ({ path, imports }) =>
      path.startsWith(`${folder}/test/`) && imports.some(({ specifier }) => specifier === KIT),
  );
  return imported ? [] : [error(`${folder}/test`, `no test imports ${KIT}`)];
}

function imports(
  file: SourceFile,
  folder: string,
  { dependencies, peerDependencies, devDependencies }: Partial<Manifest>,
): Finding[] {
  return file.imports.flatMap(({ specifier, line, typeOnly }) => {
    const declared = { ...dependencies, ...peerDependencies, ...(typeOnly && devDependencies) };
    const at = (message: string) => [{ ...error(file.path, message), line }];
    if (isRelative(specifier))
      return resolveRelative(file, specifier).startsWith(`${folder}/`)
        ? []
        : at(`${specifier} leaves the driver`);
    if (isBuiltin(specifier)) return [];
    const { name } = splitSpecifier(specifier);
    if (matches(name, DRIVERS_NEVER_IMPORT))
      return at(`imports ${name}; logs and counts are what layers around a driver are for`);
    if (!Object.hasOwn(declared, name))
      return at(`imports ${name}, which ${folder}/package.json does not declare`);
    const outside = !folder.startsWith("packages/") && name.startsWith("@nodeyard/");
    return outside && name !== "@nodeyard/driver"
      ? at(`imports ${name}; the SDK is @nodeyard/driver alone`)
      : [];
  });
}

function manifestOf({ root }: Workspace, folder: string): Partial<Manifest> {
  const path = join(root, folder, "package.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
}

function error(path: string, message: string): Finding {
  return { rule: "driver", severity: "error", path, message };
}
