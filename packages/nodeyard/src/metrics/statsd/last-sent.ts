import type { StatsdSample } from "./lines.ts";

/**
 * Which gauges are worth a line: those that changed since they were sent, all of them at a heartbeat (idle ones would expire where they
 * are kept), and a last zero for what there is no longer.
 */
export class LastSent {
  readonly #values = new Map<string, number>();

  /** `all` is everything that there is now. */
  worth(all: readonly StatsdSample[], heartbeat: boolean): readonly StatsdSample[] {
    const gone = new Set(this.#values.keys());
    const worth: StatsdSample[] = [];
    for (const sample of all) {
      gone.delete(sample.key);
      if (!heartbeat && this.#values.get(sample.key) === sample.value) continue;
      this.#values.set(sample.key, sample.value);
      worth.push(sample);
    }
    for (const key of gone) {
      this.#values.delete(key);
      // Without a limit there is no number that would say so.
      if (!key.startsWith("nodepool.tenant_limits.")) worth.push({ key, type: "g", value: 0 });
    }
    return worth;
  }

  /** Somebody else tells of them from now on. */
  forget(): void {
    this.#values.clear();
  }
}
