import { systemClock } from "@nodeyard/runtime";
import { listen } from "../double-server.ts";
import { GceCloud } from "./double/cloud.ts";

/** A double of Google Cloud that listens on a loopback port. */
export interface GceServer {
  readonly cloud: GceCloud;
  /** For `api-endpoint`, and without the scheme for the metadata server (`GCE_METADATA_HOST` of Google's libraries). */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts one: nothing is shared with other tests. */
export async function startGce(port = 0): Promise<GceServer> {
  const cloud = new GceCloud(systemClock);
  const server = await listen(cloud, port);
  cloud.url = server.url;
  return { cloud, ...server };
}
