import { type Clock, deadline, messageOf } from "@nodeyard/runtime";
import type { ProviderMachines } from "../../operations/index.ts";
import type { OpenProvider } from "../handles.ts";
import { silent } from "./providers.ts";

/** Above the few seconds that a driver waits for a machine, milliseconds. */
const ANSWER_MS = 10_000;

/** The sliver machines of providers that have some. Whoever asks while they are looked at gets the same answer. Never rejects. */
export class SliverMachines {
  readonly #providers: ReadonlyMap<string, OpenProvider>;
  readonly #clock: Clock;
  #look: Promise<readonly ProviderMachines[]> | undefined;

  constructor(providers: ReadonlyMap<string, OpenProvider>, clock: Clock) {
    this.#providers = providers;
    this.#clock = clock;
  }

  list(): Promise<readonly ProviderMachines[]> {
    this.#look ??= Promise.all([...this.#providers.values()].flatMap((open) => this.#of(open) ?? [])).finally(
      () => {
        this.#look = undefined;
      },
    );
    return this.#look;
  }

  /** Undefined: its nodes are no slivers. */
  #of({ config: { name }, provider }: OpenProvider): Promise<ProviderMachines> | undefined {
    const { slivers } = provider.offers ?? {};
    if (slivers === undefined) return undefined;
    const limit = deadline(this.#clock, ANSWER_MS, () => silent(name, "sliver machines", ANSWER_MS));
    return slivers
      .machines(limit.signal)
      .then(
        (machines) => ({ provider: name, error: null, machines }),
        (error: unknown) => ({ provider: name, error: messageOf(error), machines: [] }),
      )
      .finally(() => limit.cancel());
  }
}
