import type { UploadAt } from "./image-table.ts";

/**
 * Where a path of the tree belongs in the view; anything else is "other". "other" is a path below `/nodeyard`, or one that no part of
 * the view knows.
 */
export type ParsedPath =
  | { readonly kind: "node"; readonly id: string }
  | { readonly kind: "contender"; readonly id: string; readonly name: string }
  | { readonly kind: "request"; readonly id: string }
  | { readonly kind: "component"; readonly componentKind: string; readonly key: string }
  | { readonly kind: "image-pause"; readonly image: string }
  | { readonly kind: "image-request"; readonly image: string }
  | { readonly kind: "image-build"; readonly image: string; readonly build: string }
  | ({ readonly kind: "image-upload" } & UploadAt)
  /** Where a provider's uploads of a build are. */
  | { readonly kind: "image-provider" }
  /** Another folder on the way to builds and uploads. */
  | { readonly kind: "image-folder" }
  /** A lock of a builder, and all beneath it. */
  | { readonly kind: "image-lock" }
  | { readonly kind: "other" };

const imageProvider: ParsedPath = { kind: "image-provider" };
const imageFolder: ParsedPath = { kind: "image-folder" };
const imageLock: ParsedPath = { kind: "image-lock" };
const other: ParsedPath = { kind: "other" };

let lastPath = "";
let lastPlace: ParsedPath = other;

/** A feed asks several times in a row about the path that it is at; places never change, so the last answer is kept. */
export function parsePath(path: string): ParsedPath {
  if (path !== lastPath) {
    lastPlace = findPlace(path);
    lastPath = path;
  }
  return lastPlace;
}

const NODES = "/nodepool/nodes/";
const REQUESTS = "/nodepool/requests/";
const LOCK = "/lock/";
/** The roots of what else is in the view. */
const ROOTS = /^\/nodepool\/(?:components|images)\//;

/**
 * Each literal is checked, not only counted, so that no name in a path can pass for another kind of object. Nodes and requests come first
 * and are not split into parts: most paths that change are theirs.
 */
function findPlace(path: string): ParsedPath {
  if (path.startsWith(NODES)) return nodePlace(path);
  if (path.startsWith(REQUESTS)) {
    const id = path.slice(REQUESTS.length);
    return id === "" || id.includes("/") ? other : { kind: "request", id };
  }
  if (!ROOTS.test(path)) return other;
  const parts = path.split("/");
  const [, , root, first, second] = parts;
  if (first === undefined || first === "") return other;
  if (root === "images") return imagePlace(parts);
  return parts.length === 5 ? { kind: "component", componentKind: first, key: `${first}/${second}` } : other;
}

function nodePlace(path: string): ParsedPath {
  const slash = path.indexOf("/", NODES.length);
  const id = path.slice(NODES.length, slash === -1 ? undefined : slash);
  if (id === "") return other;
  if (slash === -1) return { kind: "node", id };
  const name = path.slice(slash + LOCK.length);
  return path.startsWith(LOCK, slash) && !name.includes("/") ? { kind: "contender", id, name } : other;
}

/**
 * `<image>/builds/<build>/providers/<provider>/images/<upload>`, with locks on the way (docs/contract/tree.md, "Paths of the
 * contract").
 */
function imagePlace(parts: readonly string[]): ParsedPath {
  const [, , , image = "", builds, build, providers, provider, images, upload] = parts;
  // The cases go from the shortest path to the longest; what has an unexpected name on the way is a lock, of which nothing is read.
  if (parts.length === 4) return imageFolder;
  if (builds === "pause") return parts.length === 5 ? { kind: "image-pause", image } : other;
  if (builds === "request-build") return parts.length === 5 ? { kind: "image-request", image } : other;
  if (builds !== "builds") return imageLock;
  if (build === undefined) return imageFolder;
  if (build === "lock") return imageLock;
  if (parts.length === 6) return { kind: "image-build", image, build };
  if (providers !== "providers") return imageLock;
  if (provider === undefined) return imageFolder;
  if (parts.length === 8) return imageProvider;
  if (images !== "images" || upload === "lock") return imageLock;
  if (upload === undefined) return imageFolder;
  return parts.length === 10 ? { kind: "image-upload", image, build, provider, upload } : imageLock;
}
