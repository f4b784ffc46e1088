import type { ProviderUse } from "@nodeyard/asking";
import type { Clock } from "@nodeyard/runtime";
import type { Journal, JournalEventName } from "@nodeyard/telemetry";
import type { View } from "@nodeyard/view";

/** Kept of each provider: the journal has all of them. */
const KEPT = 10;

/** `at` is wall time of this process, milliseconds; `kind` is the DriverError's, where the event has one. */
type ProviderError = ProviderUse["errors"][number];
const ERRORS: ReadonlySet<JournalEventName> = new Set(["node.launch-failed", "node.delete-failed"]);

/** The last errors of launches and deletions by provider, since this process started. */
export class LastErrors {
  readonly #byProvider = new Map<string, ProviderError[]>();

  /** The same journal, from whose events they are learnt. */
  around(journal: Journal, { nodes }: Pick<View, "nodes">, clock: Pick<Clock, "now">): Journal {
    return {
      write: (event) => {
        journal.write(event);
        if (!ERRORS.has(event.event) || event.node === undefined) return;
        const provider = (event.record ?? nodes.byId.get(event.node)?.record)?.provider;
        if (provider == null) return;
        const { event: name, node, facts } = event;
        const kind = typeof facts.kind === "string" ? facts.kind : null;
        const error = String(facts.error);
        const known = this.#byProvider.get(provider) ?? [];
        this.#byProvider.set(provider, [
          ...known.slice(1 - KEPT),
          { at: clock.now(), event: name, node, kind, error },
        ]);
      },
    };
  }

  /** Oldest first. */
  of(provider: string): readonly ProviderError[] {
    return this.#byProvider.get(provider) ?? [];
  }
}
