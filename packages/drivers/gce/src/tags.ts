import { jsonIn, type Metadata, machineMetadata, type Tag } from "@nodeyard/driver";

/** What of metadata can be labels, for bills and filters: Google takes few characters. The whole is in metadata or in a description. */
export function labelsOf(metadata: Metadata): Metadata {
  const fit = Object.entries(metadata).filter(
    ([key, value]) => /^[a-z][a-z0-9_-]{0,62}$/.test(key) && /^[a-z0-9_-]{0,63}$/.test(value),
  );
  return Object.fromEntries(fit.slice(0, 64));
}

/** The labels and the description of a disk, which has no metadata. */
export function diskMarks(tag: Tag): { readonly labels: Metadata; readonly description: string } {
  const metadata = machineMetadata(tag);
  return { labels: labelsOf(metadata), description: JSON.stringify(metadata) };
}

/** What a description of ours says; empty for one that people wrote. */
export function marksIn(description = ""): Metadata {
  return jsonIn(description) as Metadata;
}
