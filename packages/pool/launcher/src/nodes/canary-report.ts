import { canaryPath, decodeCanary, encodeCanary } from "@nodeyard/model";
import { messageOf, withBoot } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";

import type { Handles } from "../handles.ts";
import { canaryIn } from "./boot-image.ts";

/** The most tries to write a record that other launchers write at the same time. */
const TRIES = 5;

/**
 * Whether a node boots a build on trial, or one that failed it. Its failure counts for the trial only, not for label or zone.
 * `imageId`: the path of an upload in the tree, whose fourth and sixth parts are image and build; a cloud image's name has no such
 * parts.
 */
export function isUnproven({ view }: Pick<Handles, "view">, imageId: string | null): boolean {
  const [, , , image, , build] = imageId?.split("/") ?? [];
  const canary = image === undefined ? undefined : canaryIn(view.own, image);
  if (canary === undefined || build === undefined) return false;
  return canary.candidate === build || canary.rejected.includes(build);
}

/**
 * Tells the trial of an image how a launch of it went; nothing while there is none. `bootMs` undefined: its machine did not answer.
 * A report that fails is logged: a trial needs many launches, and no launch needs a trial. Never rejects.
 */
export async function tellCanary(
  { tree, view, log }: Pick<Handles, "tree" | "view" | "log">,
  imageId: string | null,
  bootMs: number | undefined,
): Promise<void> {
  const [, , , image, , build] = imageId?.split("/") ?? [];
  if (image === undefined || build === undefined) return;
  const known = canaryIn(view.own, image);
  // Without a candidate nothing is compared, and a build that was rolled back is out of the comparison.
  if (known === undefined || known.candidate === null || known.rejected.includes(build)) return;
  try {
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const { data, stat } = await tree.get(canaryPath(image));
      const canary = decodeCanary(image, data);
      // A new trial has begun since the launch was planned, and this launch belongs to the old one.
      if (canary.candidate !== known.candidate) return;
      // Builds that are not on trial are what the candidate is compared with.
      const side = build === canary.candidate ? "candidate" : "stable";
      const tallies = { ...canary.tallies, [side]: withBoot(canary.tallies[side], bootMs) };
      try {
        await tree.set(canaryPath(image), encodeCanary({ ...canary, tallies }, data), {
          version: stat.version,
        });
        return;
      } catch (error) {
        if (!(error instanceof TreeError) || error.code !== "tree.bad_version") throw error;
      }
    }
    log.debug(
      { image, build },
      "cannot count a launch in the trial of its image: too many concurrent writes",
    );
  } catch (error) {
    log.warn({ image, build, error: messageOf(error) }, "cannot count a launch in the trial of its image");
  }
}
