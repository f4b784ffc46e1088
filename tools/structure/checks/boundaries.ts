import type { Finding } from "../findings.ts";
import type { Import } from "../imports.ts";
import { FLOORS, matches, NEVER } from "../rules.ts";
import {
  floorOf,
  isRelative,
  type Package,
  resolveRelative,
  type SourceFile,
  splitSpecifier,
  type Workspace,
} from "../workspace.ts";

/**
 * No import runs up a floor, no package needs one that needs it, and each is entered through its doors. That a package declares what it
 * imports is checked with its dependencies.
 */
export function checkBoundaries(workspace: Workspace): Finding[] {
  return [
    ...workspace.packages.filter((one) => !FLOORS.includes(floorOf(one))).map(unknownFloor),
    ...workspace.packages.flatMap((one) => checkNeeds(workspace, one)),
    ...workspace.files.flatMap((file) =>
      file.imports.flatMap((one) =>
        isRelative(one.specifier) ? checkRelative(workspace, file, one) : checkNamed(workspace, file, one),
      ),
    ),
  ];
}

function unknownFloor(owner: Package): Finding {
  return inManifest(owner, `${floorOf(owner)} is no floor of the house; they are ${FLOORS.join(", ")}`);
}

/** What a package may need follows from its manifest: floors, circles, and the few that the table forbids. */
function checkNeeds(workspace: Workspace, owner: Package): Finding[] {
  const forbidden = [owner.name, `${floorOf(owner)}/*`, "*"].flatMap((name) => NEVER[name] ?? []);
  return needsOf(workspace, owner).flatMap((needed) => {
    if (matches(needed.name, forbidden)) return [inManifest(owner, `must not need ${needed.name}`)];
    const [own, other] = [owner, needed].map((one) => FLOORS.indexOf(floorOf(one)));
    if (other! > own!)
      return [inManifest(owner, `needs ${needed.name}, which stands on a higher floor, ${floorOf(needed)}`)];
    const isBack = reach(workspace, needed).has(owner);
    return isBack ? [inManifest(owner, `needs ${needed.name}, which needs it, too`)] : [];
  });
}

function needsOf({ packages }: Workspace, { manifest }: Package): Package[] {
  const { dependencies, peerDependencies, optionalDependencies } = manifest;
  const names = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies });
  return packages.filter(({ name }) => names.includes(name));
}

function reach(workspace: Workspace, from: Package): ReadonlySet<Package> {
  const seen = new Set([from]);
  for (const one of seen) for (const next of needsOf(workspace, one)) seen.add(next);
  return seen;
}

function checkNamed(workspace: Workspace, file: SourceFile, one: Import): Finding[] {
  const { name, subpath } = splitSpecifier(one.specifier);
  const target = workspace.packages.find((candidate) => candidate.name === name);
  if (target === undefined) return [];
  const doors = target.manifest.exports ?? {};
  if (!(subpath in doors)) {
    const others = Object.keys(doors).join(", ");
    return [finding(file, one, `${one.specifier} is no door of ${name}; it exports ${others}`)];
  }
  const isOwn = target === file.package && file.part === "src";
  return isOwn ? [finding(file, one, `imports its own package by name; use a relative path`)] : [];
}

function checkRelative({ packages }: Workspace, file: SourceFile, one: Import): Finding[] {
  const target = resolveRelative(file, one.specifier);
  if (!/\.(tsx?|json)$/.test(target)) return [finding(file, one, `${one.specifier} needs the ending .ts`)];
  const into = packages.find(({ folder }) => target.startsWith(`${folder}/`));
  const inSource = file.part === "src";
  if (into === file.package) {
    const allowed = !inSource || into === undefined || target.startsWith(`${into.folder}/src/`);
    if (allowed || target === `${into.folder}/package.json`) return [];
    return [finding(file, one, `src must not import ${target}`)];
  }
  if (!inSource && (into === undefined || sharesWithTests(file, into, target))) return [];
  return [finding(file, one, `reaches into ${target}; import the package by its name`)];
}

/** Tests share rigs, and look inside packages of their own floor and of those below. */
function sharesWithTests({ package: owner }: SourceFile, into: Package, target: string): boolean {
  if (target.startsWith(`${into.folder}/test/`)) return true;
  return owner !== undefined && FLOORS.indexOf(floorOf(into)) <= FLOORS.indexOf(floorOf(owner));
}

function inManifest({ folder }: Package, message: string): Finding {
  return { rule: "boundary", severity: "error", path: `${folder}/package.json`, message };
}

function finding(file: SourceFile, one: Import, message: string): Finding {
  return { rule: "boundary", severity: "error", path: file.path, line: one.line, message };
}
