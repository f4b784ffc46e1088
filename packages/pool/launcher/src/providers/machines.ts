import type { SliverMachine } from "@nodeyard/driver";
import { firstLine, type StandingFact, type StandingState, standingFact } from "@nodeyard/model";
import type { ProviderMachines, StandingCode } from "@nodeyard/operations";
import { type Clock, deadline, messageOf } from "@nodeyard/runtime";
import type { OpenProvider } from "../handles.ts";
import { silent } from "./providers.ts";

/** Above the few seconds that a driver waits for a machine, milliseconds. */
const ANSWER_MS = 10_000;
/** Below what a person waits for an explanation, milliseconds. */
const REMARKS_MS = 1_500;

/** The sliver machines of all providers that have some. Calls during a look share its result. Never rejects. */
export class SliverMachines {
  readonly #providers: ReadonlyMap<string, OpenProvider>;
  readonly #clock: Clock;
  #look: Promise<readonly ProviderMachines[]> | undefined;
  /** How they stood when `observe` looked last. */
  facts: readonly StandingFact[] = [];

  constructor(providers: ReadonlyMap<string, OpenProvider>, clock: Clock) {
    this.#providers = providers;
    this.#clock = clock;
  }

  /** Waits for the slowest provider, at most as long as one may take; a provider that fails appears with its error. */
  list(): Promise<readonly ProviderMachines[]> {
    this.#look ??= Promise.all([...this.#providers.values()].flatMap((open) => this.#of(open) ?? [])).finally(
      () => {
        this.#look = undefined;
      },
    );
    return this.#look;
  }

  /** Looks at all for `facts`. Never rejects. */
  async observe(): Promise<void> {
    this.facts = (await this.list()).flatMap(({ provider, machines }) =>
      machines.map((machine) => machineFact(provider, machine)),
    );
  }

  /** As `list`; empty when that takes longer. */
  async listWithin(ms: number): Promise<readonly ProviderMachines[]> {
    return (await this.#soon(this.list(), ms)) ?? [];
  }

  /** What explains how the jobs of a node fare. Never rejects; a machine that is slow says nothing. */
  async remarks(provider: string | null, node: string): Promise<readonly string[]> {
    const open = this.#providers.get(provider ?? "");
    const look = open && this.#of(open);
    if (look === undefined) return [];
    const found = await this.#soon(look, REMARKS_MS);
    const slivers = found?.machines.flatMap((machine) => machine.slivers) ?? [];
    return slivers.flatMap((sliver) => (sliver.node === node ? sliver.remarks : []));
  }

  /** The result of a look if it comes within `ms`, else undefined. The look itself goes on. */
  async #soon<T>(look: Promise<T>, ms: number): Promise<T | undefined> {
    const slow = Promise.withResolvers<undefined>();
    const timer = this.#clock.setTimer(ms, () => slow.resolve(undefined), { background: true });
    const found = await Promise.race([look, slow.promise]);
    timer.cancel();
    return found;
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

/** A machine that says how its faults are has answered. */
function machineFact(provider: string, { name, error, faults }: SliverMachine): StandingFact {
  const fact = (state: StandingState, code: StandingCode, cause: string | null = null) =>
    standingFact("sliver-machine", `${provider}/${name}`, state, code, { provider, cause });
  if (error !== null)
    return fact(
      "failing",
      faults === undefined ? "sliver-machine.silent" : "sliver-machine.unchanged",
      firstLine(error),
    );
  if (faults?.counting === true) return fact("degraded", "sliver-machine.counting");
  if (faults !== undefined && faults.waitingThreads > 0)
    return fact("degraded", "sliver-machine.waits", `${faults.waitingThreads} have waited for half a minute`);
  return fact("good", "sliver-machine.answers");
}
