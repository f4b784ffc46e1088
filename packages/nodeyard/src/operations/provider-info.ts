import type { NodeRecord } from "@nodeyard/model";
import { type OperationHandles, orUndefined } from "./handles.ts";
import { type Listing, listNodes } from "./listing.ts";

const IMAGES = "/nodepool/images";

export interface UploadedImage {
  readonly image: string;
  readonly build: string;
  readonly uploads: readonly string[];
}

/** What the tree holds of a provider, whether it is configured or not. */
export interface ProviderInfo {
  /** By image, then by build. */
  readonly images: readonly UploadedImage[];
  readonly nodes: Listing<NodeRecord>;
}

export async function providerInfo(handles: OperationHandles, provider: string): Promise<ProviderInfo> {
  const [images, listed] = await Promise.all([uploads(handles, provider), listNodes(handles)]);
  const nodes = listed.items.map(({ record }) => record).filter((record) => record.provider === provider);
  return { images, nodes: { items: nodes, skipped: listed.skipped } };
}

async function uploads(handles: OperationHandles, provider: string): Promise<readonly UploadedImage[]> {
  // "lock" is no build, image or upload, but stands beside them.
  const names = async (path: string) =>
    [...((await orUndefined(handles.tree.children(path))) ?? [])].filter((name) => name !== "lock").sort();
  const found: UploadedImage[] = [];
  for (const image of await names(IMAGES)) {
    for (const build of await names(`${IMAGES}/${image}/builds`)) {
      const ids = await names(`${IMAGES}/${image}/builds/${build}/providers/${provider}/images`);
      if (ids.length > 0) found.push({ image, build, uploads: ids });
    }
  }
  return found;
}
