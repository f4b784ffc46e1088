import { z } from "zod";
import type { Service } from "../client/index.ts";

const volumeSchema = z.object({
  id: z.string(),
  /** "available" (attached to nothing), "in-use", "error", "deleting", ... (Block Storage API v3, "Volumes"). */
  status: z.string(),
  /** GB. */
  size: z.number(),
  /** The servers that have it. Empty once nova detached it, also when the server is gone. */
  attachments: z.array(z.object({ server_id: z.string() })).default([]),
});
export type Volume = z.infer<typeof volumeSchema>;

const limitsSchema = z.object({
  limits: z.object({
    absolute: z.object({
      maxTotalVolumes: z.number().optional(),
      maxTotalVolumeGigabytes: z.number().optional(),
    }),
  }),
});

/** The driver's calls to cinder. A cloud without cinder has no volumes. */
export class BlockStorage {
  readonly #cinder: Service;

  constructor(cinder: Service) {
    this.#cinder = cinder;
  }

  /** Whether the cloud has cinder. */
  exists(signal: AbortSignal): Promise<boolean> {
    return this.#cinder.exists(signal);
  }

  /** All volumes of the project; empty in a cloud without cinder. */
  async volumes(signal: AbortSignal): Promise<readonly Volume[]> {
    if (!(await this.exists(signal))) return [];
    return this.#cinder.list("volumes", volumeSchema, "/volumes/detail", signal);
  }

  /** The limits; -1 means no limit. Null when the cloud has no block storage. */
  async limits(signal: AbortSignal) {
    if (!(await this.exists(signal))) return null;
    return (await this.#cinder.json(limitsSchema, "GET", "/limits", signal)).limits.absolute;
  }

  /** A volume that does not exist is no error. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#cinder.gone(`/volumes/${encodeURIComponent(id)}`, signal);
  }
}
