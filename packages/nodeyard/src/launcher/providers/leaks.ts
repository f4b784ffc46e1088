import { leaked, type Resource } from "@nodeyard/driver";
import { deadline, jitter, messageOf, NodeyardError } from "@nodeyard/runtime";
import type { Context, OpenProvider } from "../context.ts";
import { mayAct } from "../fence/effects.ts";

const SWEEP_MS = 60_000;
const ANSWER_MS = 120_000;

/**
 * Finds what a provider has of ours without a record and deletes it: only with our installation id, only when seen by two
 * sweeps, only from a complete view, and never more than the brake allows (design, rule 5).
 */
export class LeakSweep {
  readonly #context: Context;
  readonly #open: OpenProvider;
  readonly #stop = new AbortController();
  #suspects: ReadonlySet<string> = new Set();
  #timer: { cancel(): void } | undefined;

  constructor(context: Context, open: OpenProvider) {
    this.#context = context;
    this.#open = open;
  }

  start(): void {
    if (!this.#open.driver.capabilities.tags) return;
    const { clock, random } = this.#context;
    this.#timer = clock.setTimer(
      jitter(random, SWEEP_MS),
      () =>
        void this.sweep()
          .catch((error) =>
            this.#context.log.warn(
              { provider: this.#open.config.name, error: messageOf(error) },
              "a leak sweep failed; the next one tries again",
            ),
          )
          .finally(() => {
            if (!this.#stop.signal.aborted) this.start();
          }),
      { background: true },
    );
  }

  close(): void {
    this.#stop.abort(new Error("the provider is stopped"));
    this.#timer?.cancel();
  }

  /** One look. What is suspected now is deleted by the next look that still suspects it. */
  async sweep(): Promise<void> {
    const { view, log, counters, clock } = this.#context;
    const { name } = this.#open.config;
    if (!mayAct(this.#context)) return;
    const late = () =>
      new NodeyardError(
        "launcher.provider_silent",
        `provider ${name} did not list its resources within ${ANSWER_MS} ms`,
      );
    const limit = deadline(clock, ANSWER_MS, late, this.#stop.signal);
    try {
      const resources = await this.#open.provider.list(limit.signal);
      if (!view.complete) return;
      const verdict = leaked(resources, view.nodes.byProvider.get(name), {
        installation: this.#context.installation,
        provider: name,
        previous: this.#suspects,
      });
      this.#suspects = verdict.suspects;
      if (verdict.braked) {
        counters.add("launcher.leak_brake", 1, { provider: name });
        log.error(
          { provider: name, wouldDelete: verdict.wouldRemove, listed: resources.length },
          "a leak sweep would delete too much and deletes nothing: is this the right tree for this cloud?",
        );
        return;
      }
      for (const resource of verdict.remove) await this.#remove(resource, limit.signal);
    } finally {
      limit.cancel();
    }
  }

  async #remove(resource: Resource, signal: AbortSignal): Promise<void> {
    const { log, counters, journal } = this.#context;
    const { name } = this.#open.config;
    if (!mayAct(this.#context)) return;
    try {
      await this.#open.provider.removeResource(resource, signal);
      counters.add("launcher.leaked", 1, { provider: name, type: resource.type });
      log.warn(
        { provider: name, type: resource.type, id: resource.id, node: resource.tag?.nodeId },
        "deleted a leaked resource",
      );
      journal.write({
        event: "resource.leaked",
        node: resource.tag?.nodeId,
        facts: { provider: name, type: resource.type, id: resource.id },
      });
    } catch (error) {
      log.warn(
        { provider: name, type: resource.type, id: resource.id, error: messageOf(error) },
        "could not delete a leaked resource",
      );
    }
  }
}
