import type { Interest } from "@nodeyard/tree";
import { type ParsedPath, parsePath } from "./paths.ts";

/**
 * Folders of Nodeyard whose records the view reads with their data; of other paths below `/nodeyard` it knows nothing. Below each of
 * them every znode is one record, which the code that owns it decodes.
 */
const DATA = [
  "/nodeyard/leases/",
  "/nodeyard/slots/",
  "/nodeyard/breakers/",
  "/nodeyard/budgets/",
  "/nodeyard/canaries/",
  "/nodeyard/dead-letters/",
  "/nodeyard/remarks/",
  "/nodeyard/spending/",
  "/nodeyard/asks/",
  // Every process that serves the API must know each token, and learn at once that one is revoked.
  "/nodeyard/tokens/",
  "/nodeyard/logins/",
  "/nodeyard/standings/",
  "/nodeyard/audit/",
];

/** Ephemeral, and so without children. Asking for their children would cost a read for each of them. */
const LEAVES = ["/nodeyard/asks/", "/nodeyard/standings/"];

/** Kinds of paths whose children belong into the view. */
const HOLDING: ReadonlySet<ParsedPath["kind"]> = new Set([
  "node",
  "image-folder",
  "image-build",
  "image-provider",
  "other",
]);

/** Whether the view needs the children of a path; contenders, requests, components and builders' locks have none of interest. */
export function mayHold(path: string): boolean {
  return HOLDING.has(parsePath(path).kind) && !LEAVES.some((root) => path.startsWith(root));
}

/**
 * The only children of interest, where the rest need not be listed: limits, elections and members of `/nodeyard` are not in the view.
 * A folder with thousands of foreign children costs nothing.
 */
const ONLY: Partial<Record<ParsedPath["kind"], readonly string[]>> = {
  node: ["lock"],
  "image-build": ["providers"],
  "image-provider": ["images"],
};

/** Names of the folders of DATA below `/nodeyard`. */
const OWN: readonly string[] = DATA.map((root) => root.split("/")[2]!);

/** The children of a path that the feed should list; undefined: all of them. */
export function onlyBelow(path: string): readonly string[] | undefined {
  return path === "/nodeyard" ? OWN : ONLY[parsePath(path).kind];
}

/** Lock contenders are wanted by name only, so that no lock znode is ever fetched. */
export function interestOf(path: string): Interest {
  const place = parsePath(path);
  switch (place.kind) {
    case "node":
    case "request":
    case "component":
    case "image-build":
    case "image-upload":
      return "data";
    // A repeated request is a new write, and only watched data reports that.
    case "image-request":
      return "data";
    case "contender":
    case "image-pause":
      return "name";
    case "image-folder":
    case "image-provider":
    case "image-lock":
      return "none";
    case "other":
      return DATA.some((root) => path.startsWith(root)) ? "data" : "none";
  }
}
