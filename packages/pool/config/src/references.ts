import { isMapping } from "@nodeyard/driver";
import type { Findings, Path } from "./findings.ts";

type Raw = Readonly<Record<string, unknown>>;

/**
 * Names that a provider may refer to: as they are written, valid or not, so that one mistake is not reported a second time as a
 * dangling reference.
 */
interface TopNames {
  readonly labels: ReadonlySet<string>;
  /** Abstract ones, too. */
  readonly diskimages: ReadonlySet<string>;
}

/** What a file defines at the top. */
export function namesIn({ labels, diskimages }: Raw): TopNames {
  return { labels: namesOf(labels), diskimages: namesOf(diskimages) };
}

/** Names of the labels in a provider's pools, for a provider that no driver has compiled. */
export function labelsIn({ pools }: Raw): readonly string[] {
  return mappingsIn(pools).flatMap(([, { labels }]) => [...namesOf(labels)]);
}

/**
 * Reports dangling references of a provider (docs/contract/config.md, "Cross checks"): those that Nodepool's validator finds, and those
 * of its loader, which looks up the images of a label among the provider's.
 */
export function checkReferences(
  { diskimages, "cloud-images": cloudImages, pools }: Raw,
  path: Path,
  top: TopNames,
  source: "schema" | "load",
  findings: Findings,
): void {
  const check = (name: unknown, known: ReadonlySet<string>, at: Path, where: string) => {
    if (typeof name === "string" && !known.has(name))
      findings.add("error", source, [...path, ...at], `names ${name}, which is not ${where}; add it there`);
  };
  const topImages = [top.diskimages, "among the top-level diskimages"] as const;
  const [images, among] =
    source === "schema" ? topImages : ([namesOf(diskimages), "in this provider's diskimages"] as const);
  for (const [index, { name }] of mappingsIn(diskimages))
    check(name, topImages[0], ["diskimages", index, "name"], topImages[1]);
  for (const [pool, { labels }] of mappingsIn(pools)) {
    for (const [index, label] of mappingsIn(labels)) {
      const at = ["pools", pool, "labels", index] as const;
      check(label.name, top.labels, [...at, "name"], "in the top-level labels");
      check(label.diskimage, images, [...at, "diskimage"], among);
      if (source === "load")
        check(
          label["cloud-image"],
          namesOf(cloudImages),
          [...at, "cloud-image"],
          "in this provider's cloud-images",
        );
    }
  }
}

function namesOf(list: unknown): ReadonlySet<string> {
  return new Set(mappingsIn(list).flatMap(([, { name }]) => (typeof name === "string" ? [name] : [])));
}

/** The mappings of a list, each with its index; whatever else is there, the schema refuses. */
function mappingsIn(list: unknown): readonly (readonly [number, Raw])[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((item, index) => (isMapping(item) ? [[index, item] as const] : []));
}
