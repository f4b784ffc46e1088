import { isBuiltin } from "node:module";
import type { Finding } from "../findings.ts";
import { LOADED_BY_NAME, matches } from "../rules.ts";
import { isRelative, type Package, type SourceFile, splitSpecifier, type Workspace } from "../workspace.ts";

/** Imported packages are declared in package.json, and declared ones are imported. */
export function checkDependencies(workspace: Workspace): Finding[] {
  return workspace.packages.flatMap((owner) => {
    const files = workspace.files.filter((file) => file.package === owner);
    return [...undeclared(workspace, owner, files), ...unused(owner, files)];
  });
}

function undeclared(workspace: Workspace, owner: Package, files: readonly SourceFile[]): Finding[] {
  const { manifest } = owner;
  const shipped = keys(manifest.dependencies, manifest.peerDependencies, manifest.optionalDependencies);
  const own = keys(manifest.devDependencies);
  const testing = new Set([...shipped, ...own, ...keys(workspace.manifest.devDependencies)]);
  const ours = new Set(workspace.packages.map((one) => one.name));
  return files.flatMap((file) =>
    file.imports.flatMap((one): Finding[] => {
      const { name } = splitSpecifier(one.specifier);
      if (isRelative(one.specifier) || isBuiltin(one.specifier) || name === owner.name) return [];
      const src = file.part === "src";
      // Types are not there at run time.
      if (src && one.typeOnly && own.has(name)) return [];
      // The conformance suites of other packages are loaded from the workspace: tests need not declare our packages.
      if (src ? shipped.has(name) : testing.has(name) || ours.has(name)) return [];
      const field = src ? "dependencies" : "devDependencies";
      const message = `imports ${name}, which ${owner.folder}/package.json does not declare in ${field}`;
      return [{ rule: "dependency", severity: "error", path: file.path, line: one.line, message }];
    }),
  );
}

function unused(owner: Package, files: readonly SourceFile[]): Finding[] {
  const { dependencies, peerDependencies, devDependencies } = owner.manifest;
  const byName = LOADED_BY_NAME[owner.name];
  const src = importedBy(files.filter((file) => file.part === "src"));
  const all = importedBy(files);
  const idle = [
    ...[...keys(dependencies, peerDependencies)].filter((name) => !src.has(name)),
    ...[...keys(devDependencies)].filter((name) => !all.has(name) && !name.startsWith("@types/")),
  ];
  return idle
    .filter((name) => byName === undefined || !matches(name, [byName]))
    .map((name) => {
      const message = `declares ${name}, which nothing imports`;
      return { rule: "dependency", severity: "error", path: `${owner.folder}/package.json`, message };
    });
}

function importedBy(files: readonly SourceFile[]): Set<string> {
  return new Set(files.flatMap((file) => file.imports.map((one) => splitSpecifier(one.specifier).name)));
}

function keys(...tables: (Readonly<Record<string, string>> | undefined)[]): Set<string> {
  return new Set(tables.flatMap((table) => Object.keys(table ?? {})));
}
