import { sleep } from "@nodeyard/runtime";
import type { LabelConfig, ProviderConfig } from "../config/compiled.ts";
import type {
  CreateOrder,
  ExternalId,
  InventoryItem,
  Machine,
  ProbeResult,
  Provider,
  Resource,
  Step,
  StepContext,
  Tag,
} from "../contract.ts";
import { asDriverError, DriverError } from "../errors.ts";
import { idText } from "../leaks/leaked.ts";
import { abortable } from "../limits/shared-value.ts";
import type { Offers } from "../offers.ts";
import type { Resources } from "../resources.ts";
import { imageTagOf, machineMetadata, sameNode, tagOf } from "../tags.ts";
import { drive, driveTo } from "./drive.ts";
import { describe } from "./instance.ts";
import { offersOf } from "./offers.ts";
import type { Adapter, Instance, MachineOrder, Pacing } from "./types.ts";

const CALL_MS = 120_000;
/** For one deletion; the old framework's bound (docs/contract/launcher.md, "Attempts and deletions"). */
const DELETE_MS = 600_000;

/** A provider whose machines are an adapter's state machines. */
export class AdapterProvider implements Provider {
  readonly offers: Offers;
  readonly #adapter: Adapter;
  readonly #config: ProviderConfig;
  readonly #pacing: Pacing;
  readonly #typed: (error: unknown, place: string) => DriverError;
  readonly #ended = new AbortController();

  constructor(
    adapter: Adapter,
    config: ProviderConfig,
    pacing: Pacing,
    typed: (error: unknown, place: string) => DriverError = asDriverError,
  ) {
    this.#adapter = adapter;
    this.#config = config;
    this.#pacing = pacing;
    this.#typed = typed;
    this.offers = offersOf(adapter, {
      pacing,
      call: (place, signal, work) => this.#call(place, signal, work),
      instancesOf: (tag, signal) => this.#instancesOf(tag, signal),
      steps: (place, signal, work) => this.#steps(place, signal, work),
    });
  }

  create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    return this.#steps("create", context.signal, () => this.#create(order, context));
  }

  remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    return this.#steps("remove", context.signal, () => this.#remove(tag, context));
  }

  async find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined> {
    const [found] = await this.#call("find", signal, () => this.#instancesOf(tag, signal));
    return found?.externalId;
  }

  list(signal: AbortSignal): Promise<readonly Resource[]> {
    return this.#call("list", signal, async () => {
      const [instances, others] = await Promise.all([
        this.#adapter.listInstances(signal),
        this.#adapter.listResources?.(signal) ?? [],
      ]);
      const machines = instances
        .filter(({ deleted }) => !deleted)
        .map(({ externalId: id, metadata, quota: resources }) => {
          return { type: "instance", id, tag: tagOf(metadata), resources };
        });
      const seen = new Set(machines.map(({ id }) => idText(id)));
      const rest = others
        .filter(({ type, id }) => type !== "instance" || !seen.has(idText(id)))
        .map(({ type, id, metadata }) => {
          return { type, id, tag: tagOf(metadata), imageTag: imageTagOf(metadata), resources: {} };
        });
      return [...machines, ...rest];
    });
  }

  async removeResource(resource: Resource, signal: AbortSignal): Promise<void> {
    if (resource.type === "instance" && resource.tag !== null) {
      const { tag } = resource;
      const steps = this.remove(tag, { signal, externalId: resource.id });
      while (!(await steps.next()).done);
      return;
    }
    await this.#call("removeResource", signal, async () => {
      const listed = (await this.#adapter.listResources?.(signal)) ?? [];
      const wanted = idText(resource.id);
      const found = listed.find(({ type, id }) => type === resource.type && idText(id) === wanted);
      if (found !== undefined) await this.#adapter.deleteResource?.(found, signal);
    });
  }

  quota(signal: AbortSignal): Promise<Resources> {
    return this.#call("quota", signal, async () => (await this.#adapter.quotaLimits?.(signal)) ?? {});
  }

  need(label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    return this.#call("need", signal, async () => {
      if ((await this.#adapter.labelReady?.(label, signal)) === false) {
        const why = `label ${label.name}: its image ${label.image?.name ?? ""} is not there`;
        throw new DriverError("configuration", why);
      }
      return (await this.#adapter.quotaForLabel?.(label, signal)) ?? { instances: 1 };
    });
  }

  inventory(): readonly InventoryItem[] {
    return [];
  }

  async probe(): Promise<ProbeResult> {
    return { alive: false, why: `driver ${this.#config.driver} has no inventory` };
  }

  async close(): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(new DriverError("transient", `provider ${this.#config.name} is closed`));
    await this.#adapter.stop?.();
  }

  async *#create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    const listed = await this.#adapter.listInstances(context.signal);
    const up = ours(listed, order.tag).find(({ ready }) => ready);
    if (up !== undefined) return yield* keep(up, order, context);
    const { tag, ...rest } = order;
    const machineOrder: MachineOrder = { ...rest, metadata: machineMetadata(tag) };
    const begun = toDelete(listed, tag, context.externalId);
    const hopeless = ours(listed, tag).some(({ failed }) => failed === true);
    const resumed = hopeless ? undefined : yield* this.#resume(machineOrder, begun, context);
    if (resumed !== undefined) return describe(resumed, order);
    for (const externalId of begun) yield* this.#delete(externalId, context);
    const machine = this.#adapter.createMachine(machineOrder);
    // What was stored is gone by now: the next id is news, whatever it is.
    const fresh = { ...context, externalId: null };
    const deadlineMs = this.#config.launchTimeoutMs;
    return describe(yield* driveTo({ ...this.#pacing, machine, context: fresh, deadlineMs }), order);
  }

  /** The machine that was begun, brought to its end; undefined where there is none, or no way to go on with it. */
  async *#resume(
    order: MachineOrder,
    [begun]: readonly ExternalId[],
    context: StepContext,
  ): AsyncGenerator<Step, Instance | undefined, void> {
    if (begun === undefined || this.#adapter.resumeMachine === undefined) return undefined;
    const machine = this.#adapter.resumeMachine(order, begun);
    const deadlineMs = this.#config.launchTimeoutMs;
    try {
      return yield* driveTo({ ...this.#pacing, machine, context, deadlineMs });
    } catch (error) {
      // Of what is gone nothing is left to go on with; any other fault is the attempt's, and the launcher removes it.
      if (this.#typedOf(error, "create").kind === "not-found" && !context.signal.aborted) return undefined;
      throw error;
    }
  }

  /** Everything of the tag, and what was stored unless the cloud says that it is another's. */
  async *#remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    const look = async () =>
      toDelete(await this.#adapter.listInstances(context.signal), tag, context.externalId);
    let begun = await look();
    const { clock, listLagMs } = this.#pacing;
    if (begun.length === 0 && listLagMs > 0) {
      // What was made a moment ago may not be listed yet; after this long it is.
      yield { step: "settle", deadlineMs: listLagMs + CALL_MS };
      await sleep(clock, listLagMs, context.signal);
      begun = await look();
    }
    for (const externalId of begun) yield* this.#delete(externalId, context);
  }

  /** Ends one machine; gone already is as good (docs/contract/launcher.md, "Attempts and deletions"). */
  async *#delete(externalId: ExternalId, context: StepContext): AsyncGenerator<Step, void, void> {
    const machine = this.#adapter.deleteMachine(externalId);
    // The stored id stays as it is: it is what a crash in here has to go on.
    const kept = { ...context, externalId: machine.externalId ?? externalId };
    try {
      yield* drive({ ...this.#pacing, machine, context: kept, deadlineMs: DELETE_MS });
    } catch (error) {
      if (context.signal.aborted || this.#typedOf(error, "delete").kind !== "not-found") throw error;
    }
  }

  async #instancesOf(tag: Tag, signal: AbortSignal): Promise<readonly Instance[]> {
    return ours(await this.#adapter.listInstances(signal), tag);
  }

  /** Errors leave typed, whatever the adapter threw; a call that was given up ends with its caller's reason. */
  async #call<T>(place: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    this.#ended.signal.throwIfAborted();
    signal.throwIfAborted();
    try {
      return await abortable(work(), this.#ended.signal);
    } catch (error) {
      throw this.#thrown(error, place, signal);
    }
  }

  async *#steps<T>(
    place: string,
    signal: AbortSignal,
    work: () => AsyncGenerator<Step, T, void>,
  ): AsyncGenerator<Step, T, void> {
    this.#ended.signal.throwIfAborted();
    const steps = work();
    try {
      for (;;) {
        const next = await abortable(steps.next(), this.#ended.signal);
        if (next.done) return next.value;
        yield next.value;
      }
    } catch (error) {
      throw this.#thrown(error, place, signal);
    } finally {
      // Not awaited once the provider is closed: a step that hangs in its adapter would hold whoever closes it.
      const closed = steps.return(undefined as T);
      if (this.#ended.signal.aborted) closed.catch(() => {});
      else await closed;
    }
  }

  #thrown(error: unknown, place: string, signal: AbortSignal): unknown {
    return signal.aborted ? signal.reason : this.#typedOf(error, place);
  }

  #typedOf(error: unknown, place: string): DriverError {
    return error instanceof DriverError ? error : this.#typed(error, `${this.#config.name}: ${place}`);
  }
}

/** A machine that is up already: another process of ours made it and died before it could say so. */
async function* keep(
  up: Instance,
  order: CreateOrder,
  { externalId }: StepContext,
): AsyncGenerator<Step, Machine, void> {
  if (externalId === null || idText(externalId) !== idText(up.externalId))
    yield { step: "keep", deadlineMs: CALL_MS, save: { externalId: up.externalId } };
  return describe(up, order);
}

/** Live machines that carry the tag. */
function ours(listed: readonly Instance[], tag: Tag): readonly Instance[] {
  return listed.filter(({ deleted, metadata }) => {
    return !deleted && sameNode(tagOf(metadata), tag);
  });
}

/** Ids of all that is there of a tag; the stored one too, unless the list shows whose it really is: it may be too new for it. */
function toDelete(listed: readonly Instance[], tag: Tag, stored: ExternalId | null): readonly ExternalId[] {
  const ids = ours(listed, tag).map(({ externalId }) => externalId);
  if (stored === null) return ids;
  const shown = listed.some(({ externalId }) => idText(externalId) === idText(stored));
  return shown ? ids : [stored, ...ids];
}
