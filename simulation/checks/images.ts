import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay } from "./replay.ts";
import type { Rule } from "./rule.ts";

const UPLOAD = /^\/nodepool\/images\/[^/]+\/builds\/[^/]+\/providers\/[^/]+\/images\/\d{10}$/;
/** A launch may be in flight when its image is deleted: calls are late by at most this, milliseconds. */
const UNDER_WAY_MS = 5_000;

/** Promise to the client: a booted upload is ready, or was until a moment ago. */
export class Images implements Rule {
  readonly #readyUntil = new Map<string, number>();

  /** A launch records what it boots. */
  onNode({ id, before, after, write }: Change, { now }: Replay): void {
    const image = after?.data.image_id;
    if (image === before?.data.image_id) return;
    if (typeof image !== "string" || !image.startsWith("/nodepool/images/")) return;
    if (now - (this.#readyUntil.get(image) ?? Number.NEGATIVE_INFINITY) > UNDER_WAY_MS)
      throw new Broken("what boots is ready", write, `${id}: ${image}`);
  }

  onWrite({ ops, results }: AppliedWrite, { now }: Replay): void {
    for (const [index, op] of ops.entries()) {
      const result = results[index];
      const path = result?.op === "create" ? result.path : op.path;
      if (op.op === "check" || !UPLOAD.test(path)) continue;
      const ready = op.op !== "delete" && Buffer.from(op.data ?? "").includes('"ready"');
      if (ready) this.#readyUntil.set(path, Number.POSITIVE_INFINITY);
      else if (this.#readyUntil.get(path) === Number.POSITIVE_INFINITY) this.#readyUntil.set(path, now);
    }
  }
}
