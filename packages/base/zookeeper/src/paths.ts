import { BadArguments } from "./errors.ts";

const SLASH = 47;
const DOT = 46;

/** Throws BadArguments unless a server accepts `path`. */
export function checkPath(path: string, sequential = false): void {
  const why = pathFault(path, sequential);
  if (why !== undefined) throw new BadArguments(`${JSON.stringify(path)} is not a path: ${why}`);
}

/**
 * Why no server accepts `path`; undefined if servers do (org.apache.zookeeper.common.PathUtils): absolute, no empty, "." or ".." segment,
 * no control characters, no character outside of the basic multilingual plane. A trailing "/" is valid for sequential creates only.
 */
export function pathFault(path: string, sequential: boolean): string | undefined {
  const end = path.length;
  if (end === 0 || path.charCodeAt(0) !== SLASH) return 'it must start with "/"';
  if (end === 1) return undefined;
  let segment = 1;
  for (let i = 1; i < end; i++) {
    const code = path.charCodeAt(i);
    if (code === SLASH) {
      const why = segmentFault(path, segment, i);
      if (why !== undefined) return why;
      segment = i + 1;
    } else if (code < 0x20 || code > 0x7e) {
      if (isForbidden(code)) return `character ${i} is not allowed`;
    }
  }
  if (segment === end) return sequential ? undefined : 'it must not end with "/"';
  return segmentFault(path, segment, end);
}

function segmentFault(path: string, start: number, end: number): string | undefined {
  const size = end - start;
  if (size === 0) return "it has an empty name in it";
  if (size > 2 || path.charCodeAt(start) !== DOT) return undefined;
  return size === 1 || path.charCodeAt(start + 1) === DOT ? 'it has "." or ".." in it' : undefined;
}

function isForbidden(code: number): boolean {
  return (
    code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0xd800 && code <= 0xf8ff) || code >= 0xfff0
  );
}

/** The path as the server stores it. */
export function addChroot(chroot: string, path: string): string {
  if (chroot === "") return path;
  return path === "/" ? chroot : chroot + path;
}

/** The path as the user of a chroot sees it. */
export function stripChroot(chroot: string, path: string): string {
  if (chroot === "" || !path.startsWith(chroot)) return path;
  const rest = path.slice(chroot.length);
  return rest === "" ? "/" : rest;
}

/** The parent of an absolute path; undefined for the root. */
export function parentOf(path: string): string | undefined {
  if (path === "/") return undefined;
  const slash = path.lastIndexOf("/");
  return slash <= 0 ? "/" : path.slice(0, slash);
}
