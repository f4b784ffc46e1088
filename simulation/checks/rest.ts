import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/** How long a static host is not offered after its user's session was lost (rule 1), milliseconds. */
const REST_MS = 60_000;

/** Rule 1, for static hosts: a host whose user's session was lost rests until the user's sessions have surely ended. Slots: `slots.ts`. */
export class HostsRest implements Rule {
  readonly #provider: string | undefined;
  /** When the last user of a node in use left, by node. */
  readonly #deserted = new Map<string, number>();

  constructor(provider: string | undefined) {
    this.#provider = provider;
  }

  onNode({ id, before, after, write }: Change, { now }: Replay): void {
    const since = this.#deserted.get(id);
    if (since === undefined || stateOf(after) === "in-use") return;
    this.#deserted.delete(id);
    const state = stateOf(before);
    if (state === "in-use" && isLauncher(write.client) && now - since < REST_MS)
      throw new Broken("a deserted host rests", write, `${id}: after ${Math.round(now - since)} ms`);
  }

  onWrite(_: AppliedWrite, { nodes, left, now }: Replay): void {
    for (const id of left) {
      const { provider, state } = nodes.get(id)?.data ?? {};
      if (provider === this.#provider && state === "in-use") this.#deserted.set(id, now);
    }
  }
}
