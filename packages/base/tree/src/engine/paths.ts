import { pathFault } from "@nodeyard/zookeeper";
import { BadArguments } from "../errors.ts";

/** Throws BadArguments unless ZooKeeper accepts the path. The path of a sequential create may end in "/". */
export function checkPath(path: string, sequential: boolean): void {
  const why = pathFault(path, sequential);
  if (why !== undefined) throw new BadArguments(path, why);
}

/** The parent of a child of the root is "/", and so is that of the root itself. */
export function parentOf(path: string): string {
  const cut = path.lastIndexOf("/");
  return cut <= 0 ? "/" : path.slice(0, cut);
}
