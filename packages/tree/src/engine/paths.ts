import { BadArguments } from "../errors.ts";

/** Throws BadArguments unless ZooKeeper accepts the path. The path of a sequential create may end in "/". */
export function checkPath(path: string, sequential: boolean): void {
  if (!path.startsWith("/")) throw new BadArguments(path, 'a path begins with "/"');
  if (path === "/" && !sequential) return;
  const body = sequential && path.endsWith("/") ? path.slice(1, -1) : path.slice(1);
  if (body === "" && sequential) return;
  for (const name of body.split("/")) {
    if (name === "") throw new BadArguments(path, "a name in it is empty");
    if (name === "." || name === "..") throw new BadArguments(path, `"${name}" is not a name`);
  }
  for (let at = 0; at < path.length; at++) {
    if (isForbidden(path.charCodeAt(at)))
      throw new BadArguments(path, `its character ${at} is one that ZooKeeper forbids`);
  }
}

/** Control characters, surrogates, private use, U+FFF0 and above (ZooKeeper's PathUtils.validatePath). */
function isForbidden(code: number): boolean {
  if (code < 0x7f) return code <= 0x1f;
  return code <= 0x9f || (code >= 0xd800 && code <= 0xf8ff) || code >= 0xfff0;
}

/** The parent of a child of the root is "/", and so is that of the root itself. */
export function parentOf(path: string): string {
  const cut = path.lastIndexOf("/");
  return cut <= 0 ? "/" : path.slice(0, cut);
}
