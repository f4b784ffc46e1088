import { messageOf } from "@nodeyard/runtime";
import { learnFacts, type ProviderHandles } from "./providers.ts";
import type { Served } from "./served.ts";

const FACTS_MS = 300_000;
/** After a refusal for quota, or when somebody waits for it, the limits are asked again this soon, and no sooner. */
const ASK_MS = 2_000;
/** Machines without a record are going, and count as used by others until then: looked at again after this, then later. */
const UNSETTLED_MS = 10_000;
/** A provider whose facts could not be read is asked again after this, milliseconds. */
const FAILING_MS = 30_000;

/** Learns the facts of open providers anew: quotas change without telling. */
export class FactsKeeper {
  readonly #context: ProviderHandles;
  readonly #onChange: () => void;

  constructor(context: ProviderHandles, onChange: () => void) {
    this.#context = context;
    this.#onChange = onChange;
  }

  /** Soon: what others leave of its quota may have changed. */
  ask(served: Served): void {
    if (served.open === undefined || served.asked) return;
    served.asked = true;
    served.timer?.cancel();
    served.timer = this.#context.clock.setTimer(
      ASK_MS,
      () => {
        served.asked = false;
        void this.#refresh(served);
      },
      { background: true },
    );
  }

  /** Now and then, and sooner while something is not as it should be. */
  later(served: Served): void {
    served.unsettled = served.facts?.unsettled === true ? served.unsettled + 1 : 0;
    const { unsettled } = served;
    const settled = unsettled === 0 ? FACTS_MS : Math.min(FACTS_MS, UNSETTLED_MS * 2 ** (unsettled - 1));
    const pause = served.failing === undefined ? settled : FAILING_MS;
    // Somebody asked while the last answer was under way: that comes sooner, and one chain of questions is enough.
    if (served.asked) return;
    served.timer?.cancel();
    served.timer = this.#context.clock.setTimer(pause, () => void this.#refresh(served), {
      background: true,
    });
  }

  /** Notes for whoever wonders why nothing is launched there. */
  failed(served: Served, error: unknown, pause: number): void {
    const now = Math.round(this.#context.ages.now());
    const since = served.failing?.since ?? now;
    served.failing = { since, error: messageOf(error), nextTry: now + Math.round(pause) };
  }

  async #refresh(served: Served): Promise<void> {
    const { open, stop } = served;
    if (open === undefined || stop.signal.aborted) return;
    try {
      const facts = await this.#context.live.during(
        {
          kind: "controller",
          name: `facts of ${served.config.name}`,
          site: "launcher/providers/facts-keeper.ts",
        },
        () => learnFacts(open, this.#context, stop.signal),
      );
      // What took its place has facts of its own.
      if (served.open !== open || stop.signal.aborted) return;
      served.facts = facts;
      served.failing = undefined;
      this.#context.ledgers.setProvider(served.config.name, served.facts.local.quota);
      this.#onChange();
    } catch (error) {
      if (served.open !== open || stop.signal.aborted) return;
      this.#context.log.warn(
        { provider: served.config.name, error: messageOf(error) },
        "cannot read a provider's quota; the last known one stays in force",
      );
      this.failed(served, error, FAILING_MS);
      this.#onChange();
    }
    this.later(served);
  }
}
