import { existsSync, lstatSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { textIfExists } from "@nodeyard/runtime";
import { PATH } from "../../isolation/edge/run.ts";
import { LAYOUT, type Part } from "../parts.ts";
import type { Found } from "../plan.ts";

/**
 * Which of `parts` exist, with what a plan compares: texts, modes, targets of links. `programs`: the package of each program that
 * slivers need. Changes nothing.
 */
export function look(
  parts: readonly Part[],
  programs: Readonly<Record<string, string>>,
  running: boolean,
): Found {
  const files = new Map<string, { text: string; mode: number }>();
  const links = new Map<string, string>();
  const folders = new Map<string, number>();
  for (const part of parts) {
    if (!("path" in part)) continue;
    const found = lstatSync(part.path, { throwIfNoEntry: false });
    if (found === undefined) continue;
    if (found.isSymbolicLink()) links.set(part.path, readlinkSync(part.path));
    else if (found.isDirectory()) folders.set(part.path, found.mode & 0o7777);
    else if (found.isFile())
      files.set(part.path, { text: readFileSync(part.path, "utf8"), mode: found.mode & 0o7777 });
  }
  const missing = Object.entries(programs).filter(([program]) => !hasProgram(program));
  return {
    files,
    links,
    folders,
    users: new Set(
      parts.flatMap((part) => (part.kind === "user" && uidOf(part.name) !== undefined ? [part.name] : [])),
    ),
    missingPackages: [...new Set(missing.map(([, name]) => name))].sort(),
    running,
    due: existsSync(LAYOUT.due),
    loaded: textIfExists(LAYOUT.sshdLoaded),
  };
}

/** The id of a user from /etc/passwd, which useradd writes. */
export function uidOf(name: string): number | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((one) => one.startsWith(`${name}:`));
  return line === undefined ? undefined : Number(line.split(":")[2]);
}

/** Whether a program is installed in the system's path. */
export function hasProgram(name: string): boolean {
  return PATH.split(delimiter).some((folder) => existsSync(join(folder, name)));
}

/** Whether systemd is PID 1 here; in a container that may differ from the host. */
export function hasSystemd(): boolean {
  return statSync("/run/systemd/system", { throwIfNoEntry: false })?.isDirectory() === true;
}
