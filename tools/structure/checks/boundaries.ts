import { posix } from "node:path";
import type { Finding } from "../findings.ts";
import type { Import } from "../imports.ts";
import { matches, PACKAGES, PROGRAM, ROOMS } from "../rules.ts";
import {
  isRelative,
  type Package,
  resolveRelative,
  roomOf,
  type SourceFile,
  splitSpecifier,
  type Workspace,
} from "../workspace.ts";

const ROOM_DOOR = new RegExp(`^packages/${PROGRAM}/src/[^/]+/index\\.ts$`);

/** Which package and which room may import which others, only through doors. */
export function checkBoundaries(workspace: Workspace): Finding[] {
  return [
    ...workspace.packages.filter((one) => allowedOf(one) === undefined).map(unknownPackage),
    ...workspace.files.flatMap((file) =>
      file.imports.flatMap((one) =>
        isRelative(one.specifier) ? checkRelative(file, one) : checkNamed(workspace, file, one),
      ),
    ),
  ];
}

function allowedOf(owner: Package): readonly string[] | undefined {
  const pattern = Object.keys(PACKAGES).find((name) => matches(owner.name, [name]));
  return pattern === undefined ? undefined : PACKAGES[pattern];
}

function unknownPackage(owner: Package): Finding {
  const message = `package ${owner.name} is in no table: add it to PACKAGES in tools/structure/rules.ts`;
  return { rule: "boundary", severity: "error", path: `${owner.folder}/package.json`, message };
}

function checkNamed(workspace: Workspace, file: SourceFile, one: Import): Finding[] {
  const { name, subpath } = splitSpecifier(one.specifier);
  const target = workspace.packages.find((candidate) => candidate.name === name);
  if (target === undefined) return [];
  const exported = target.manifest.exports ?? {};
  if (!(subpath in exported))
    return [
      finding(
        file,
        one,
        `${one.specifier} is no door of ${name}; it exports ${Object.keys(exported).join(", ")}`,
      ),
    ];
  if (file.part !== "src" || file.package === undefined) return [];
  if (target === file.package)
    return [finding(file, one, `imports its own package by name; use a relative path`)];
  const allowed = allowedOf(file.package) ?? [];
  if (!matches(name, allowed))
    return [
      finding(file, one, `${file.package.name} must not import ${name}; it may import ${list(allowed)}`),
    ];
  return file.package.name === PROGRAM ? checkRoomPackage(file, one, name) : [];
}

function checkRoomPackage(file: SourceFile, one: Import, name: string): Finding[] {
  const room = roomOf(file);
  const rule = room === undefined ? undefined : ROOMS[room];
  if (rule === undefined || matches(name, rule.packages)) return [];
  return [finding(file, one, `room ${room} must not import ${name}; it may import ${list(rule.packages)}`)];
}

function checkRelative(file: SourceFile, one: Import): Finding[] {
  const target = resolveRelative(file, one.specifier);
  if (!/\.(tsx?|json)$/.test(target)) return [finding(file, one, `${one.specifier} needs the ending .ts`)];
  const owner = file.package?.folder;
  if (owner === undefined) {
    // The program is no library: a generator can use only its rooms' doors.
    const reaches = target.startsWith("packages/") && !ROOM_DOOR.test(target);
    return reaches ? [finding(file, one, `reaches into ${target}; import the package by its name`)] : [];
  }
  if (!target.startsWith(`${owner}/`)) {
    const shared = file.part === "test" && !target.startsWith("packages/");
    return shared ? [] : [finding(file, one, `leaves ${owner}; import packages by their name`)];
  }
  if (file.part !== "src") return [];
  if (target === `${owner}/package.json`) return [];
  if (!target.startsWith(`${owner}/src/`)) return [finding(file, one, `src must not import ${target}`)];
  return file.package?.name === PROGRAM ? checkRoom(file, one, target) : [];
}

function checkRoom(file: SourceFile, one: Import, target: string): Finding[] {
  const from = roomOf(file);
  const to = roomOf({ path: target, ...(file.package ? { package: file.package } : {}) });
  if (from === to) return [];
  if (to === undefined)
    return [finding(file, one, `imports the program's own door; import the room instead`)];
  if (to === "bin") return [finding(file, one, `nothing imports bin`)];
  if (posix.basename(target) !== "index.ts" || target.split("/").length !== 5)
    return [finding(file, one, `goes past the door of ${to}; import ${to}/index.ts`)];
  if (from === undefined) return [];
  const rule = ROOMS[from];
  if (rule === undefined)
    return [finding(file, one, `room ${from} is in no table: add it to ROOMS in tools/structure/rules.ts`)];
  if (rule.rooms.includes(to)) return [];
  return [finding(file, one, `room ${from} must not import room ${to}; it may import ${list(rule.rooms)}`)];
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "nothing of ours" : names.join(", ");
}

function finding(file: SourceFile, one: Import, message: string): Finding {
  return { rule: "boundary", severity: "error", path: file.path, line: one.line, message };
}
