import type { Driver, ProviderConfig } from "@nodeyard/driver";
import { LEFT_MS } from "@nodeyard/operations";
import { messageOf } from "@nodeyard/runtime";
import type { View } from "@nodeyard/view";
import type { Handles } from "../handles.ts";

/** The driver whose providers leave backing nodes behind; it is named in configurations and records. */
export const METASTATIC = "metastatic";

/**
 * Finds backing nodes of metastatic providers that no launcher serves: their launcher died, or was restarted without them in its
 * configuration, before it drained them. Only slots that Nodeyard gave out count, and only after the time that a launcher may need to
 * come back, so that an upgrade does not cost its backing nodes.
 */
export class LeftProviders {
  readonly #context: Handles;
  readonly #isKnown: (provider: string) => boolean;
  /** Serves the provider without pools until nothing of it is left. */
  readonly #drain: (provider: string) => Promise<void>;
  /**
   * Since when no launcher has served the provider, monotonic milliseconds. In this process only: a launcher that starts waits for the
   * whole time again.
   */
  readonly #since = new Map<string, number>();
  /** Providers of which the log has said that nobody serves them. */
  readonly #reported = new Set<string>();

  /** `isKnown`: it is in the configuration, or is being drained. */
  constructor(
    context: Handles,
    isKnown: (provider: string) => boolean,
    drain: (provider: string) => Promise<void>,
  ) {
    this.#context = context;
    this.#isKnown = isKnown;
    this.#drain = drain;
  }

  /** To be called on a complete view. */
  async sweep(): Promise<void> {
    const { view, clock } = this.#context;
    const now = clock.monotonic();
    this.#report();
    const left = unservedProviders(view);
    for (const provider of this.#since.keys())
      if (!left.has(provider) || this.#isKnown(provider)) this.#since.delete(provider);
    for (const provider of left) {
      if (this.#isKnown(provider)) continue;
      const since = this.#since.get(provider);
      if (since === undefined) this.#since.set(provider, now);
      else if (now - since >= LEFT_MS) await this.#begin(provider);
    }
  }

  /** One line for each provider that nobody serves and that still has nodes. */
  #report(): void {
    const { view, log } = this.#context;
    const left = leftNodes(view, this.#isKnown);
    for (const provider of this.#reported) if (!left.has(provider)) this.#reported.delete(provider);
    for (const [provider, nodes] of left) {
      if (this.#reported.has(provider)) continue;
      this.#reported.add(provider);
      log.error(
        { provider, nodes },
        `no launcher serves a provider that still has nodes, so that nobody deletes them: put it back into the configuration until they are gone, or delete the machines by hand and give up the records: nodeyard delete NODE --forget, or all: nodeyard erase ${provider}`,
      );
    }
  }

  async #begin(provider: string): Promise<void> {
    const { log } = this.#context;
    log.warn({ provider }, "no launcher serves a provider that still has slots: they are returned");
    try {
      await this.#drain(provider);
      this.#since.delete(provider);
    } catch (error) {
      const facts = { provider, error: messageOf(error) };
      log.warn(facts, "cannot return what a provider left; the next sweep will retry");
    }
  }
}

/** Nodes of providers that are not in the configuration here, and that no launcher serves: how many, by provider. */
export function leftNodes(
  view: Pick<View, "nodes" | "components">,
  isKnown: (provider: string) => boolean,
): ReadonlyMap<string, number> {
  const left = new Map<string, number>();
  for (const provider of view.nodes.byProvider.keys())
    if (provider !== "" && !isKnown(provider) && !isServedByOthers(view, provider))
      left.set(provider, view.nodes.byProvider.count(provider));
  return left;
}

/** Whether a launcher of any kind has a pool of the provider registered. */
export function isServedByOthers({ components }: Pick<View, "components">, provider: string): boolean {
  return [...components.values()].some(
    ({ kind, record }) => kind === "pool" && record.state !== "stopped" && record.providerName === provider,
  );
}

/**
 * Providers whose slots a Nodeyard launcher gave out, as the folders of their backing nodes say, and of which no launcher of any kind
 * has a pool registered.
 */
function unservedProviders({ slots, components }: Pick<View, "slots" | "components">): ReadonlySet<string> {
  const left = new Set([...slots.folders.values()].filter((provider) => provider !== null));
  for (const { kind, record } of components.values())
    if (kind === "pool" && record.state !== "stopped" && record.providerName !== null)
      left.delete(record.providerName);
  return left;
}

/** The configuration of a provider of which nothing is configured: it has no pools, so that nothing is launched or asked for. */
export function withoutPools(provider: string, { name: driver, config }: Driver): ProviderConfig {
  const raw = { name: provider, driver, pools: [] };
  const nothing = { labels: new Set<string>(), diskimages: new Map(), report: () => {} };
  const loaded = config.load(raw, nothing);
  if (loaded === undefined) throw new TypeError(`no provider can be named ${provider}`);
  return loaded;
}
