import type { Tree } from "./contract.ts";
import { ignoreExisting } from "./errors.ts";

/** Creates every part of a path that is missing; durable, without data. */
export async function ensurePath(tree: Pick<Tree, "create">, path: string): Promise<void> {
  let at = "";
  for (const part of path.split("/").slice(1)) {
    at += `/${part}`;
    await tree.create(at).catch(ignoreExisting);
  }
}
