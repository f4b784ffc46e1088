import { abortable } from "@nodeyard/runtime";
import type { CreateOrder, Machine, Provider, Resource } from "../contract.ts";
import { provide } from "../decorate.ts";
import { DriverError, LostMetadata } from "../errors.ts";
import { idText } from "../leaks.ts";
import type { Offers } from "../offers.ts";
import type { Step, StepContext } from "../run-steps.ts";
import type { ExternalId, Tag } from "../tags.ts";
import { imageTagOf, isOlder, machineMetadata, sameNode, tagOf } from "../tags.ts";
import { type AdapterParts, CALL_MS, drive, driveTo, found } from "./drive.ts";
import { imagesOf } from "./images.ts";
import type { Instance, MachineOrder } from "./types.ts";

/** Time limit of one deletion, milliseconds: Nodepool's limit (docs/contract/launcher.md, "Attempts and deletions"). */
const DELETE_MS = 600_000;

/** Makes a provider from an adapter's state machines. */
export function adapterProvider(parts: AdapterParts): Provider {
  const { adapter, config, mapError } = parts;
  const methods = {
    offers: offersOf(parts),
    ...(adapter.place && { place: () => adapter.place!() }),
    create: (order: CreateOrder, context: StepContext) => create(parts, order, context),
    remove: (tag: Tag, context: StepContext) => remove(parts, tag, context),
    async find(tag: Tag, signal: AbortSignal, stored: ExternalId | null = null) {
      const listed = await adapter.listInstances(signal);
      const lost = stored === null ? undefined : named(listed, stored);
      if (lost !== undefined && !lost.deleted && tagOf(lost.metadata) === null) return lost.externalId;
      return ours(listed, tag)[0]?.externalId;
    },
    list: (signal: AbortSignal) => list(parts, signal),
    async removeResource(resource: Resource, signal: AbortSignal) {
      if (resource.type === "instance" && resource.tag !== null) {
        const steps = remove(parts, resource.tag, { signal, externalId: resource.id });
        while (!(await steps.next()).done);
        return;
      }
      const wanted = idText(resource.id);
      const listed = (await adapter.listResources?.(signal)) ?? [];
      const there = listed.find(({ type, id }) => type === resource.type && idText(id) === wanted);
      if (there !== undefined) await adapter.deleteResource?.(there, signal);
    },
    quota: async (signal: AbortSignal) => (await adapter.quotaLimits?.(signal)) ?? {},
    async need(label: Parameters<Provider["need"]>[0], signal: AbortSignal) {
      if ((await adapter.labelReady?.(label, signal)) === false) {
        const why = `label ${label.name}: its image ${label.image?.name ?? ""} is not there`;
        throw new DriverError("configuration", why);
      }
      return (await adapter.quotaForLabel?.(label, signal)) ?? { instances: 1 };
    },
    close: async () => adapter.stop?.(),
  };
  return provide(config.name, methods, mapError);
}

/** The optional features of the adapter. */
function offersOf(parts: AdapterParts): Offers {
  const { adapter, limiter } = parts;
  return {
    pace: { now: () => limiter },
    ...(adapter.zones && {
      zones: { list: async (pool, signal) => [...(await adapter.zones!(pool, signal))].sort() },
    }),
    ...(adapter.consoleLog && {
      console: {
        async read(tag, { signal, externalId }) {
          const id = ours(await adapter.listInstances(signal), tag)[0]?.externalId ?? externalId;
          return id === null ? null : adapter.consoleLog!(id, signal);
        },
      },
    }),
    ...(adapter.uploadImage && adapter.deleteImage && { images: imagesOf(parts) }),
  };
}

/** Instances and other resources as one list. An adapter may list instances among its resources too; they count once. */
async function list({ adapter }: AdapterParts, signal: AbortSignal): Promise<readonly Resource[]> {
  const [instances, others] = await Promise.all([
    adapter.listInstances(signal),
    adapter.listResources?.(signal) ?? [],
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
}

async function* create(
  parts: AdapterParts,
  order: CreateOrder,
  context: StepContext,
): AsyncGenerator<Step, Machine, void> {
  const { adapter, config } = parts;
  yield { step: "find", deadlineMs: CALL_MS };
  const listed = await abortable(adapter.listInstances(context.signal), context.signal);
  const up = ours(listed, order.tag).find(({ ready }) => ready);
  if (up !== undefined) return yield* keep(up, order, context);
  const { tag, ...rest } = order;
  const machineOrder: MachineOrder = { ...rest, metadata: machineMetadata(tag) };
  const begun = toDelete(listed, tag, context.externalId);
  const hopeless = ours(listed, tag).some(({ failed }) => failed === true);
  const resumed = hopeless ? undefined : yield* resume(parts, machineOrder, begun, context);
  if (resumed !== undefined) return describe(resumed, order);
  for (const externalId of begun) yield* end(parts, externalId, context);
  // The stored machine was deleted above, so the id of the new one must be saved even if it is equal.
  const fresh = { ...context, externalId: null };
  const machine = adapter.createMachine(machineOrder);
  return describe(yield* driveTo(parts, machine, fresh, config.launchTimeoutMs), order);
}

/** Finishes a machine that an earlier process began; undefined when there is none or the adapter cannot resume. */
async function* resume(
  parts: AdapterParts,
  order: MachineOrder,
  [begun]: readonly ExternalId[],
  context: StepContext,
): AsyncGenerator<Step, Instance | undefined, void> {
  const { adapter, config } = parts;
  if (begun === undefined || adapter.resumeMachine === undefined) return undefined;
  try {
    const machine = adapter.resumeMachine(order, begun);
    return yield* driveTo(parts, machine, context, config.launchTimeoutMs);
  } catch (error) {
    // When the begun machine is gone, a new one is made. Any other error fails the attempt, and the launcher removes the machine.
    if (isNotFound(parts, error) && !context.signal.aborted) return undefined;
    throw error;
  }
}

/** Removes all machines with the tag, and the stored one unless the cloud shows that it belongs to another node. */
async function* remove(
  parts: AdapterParts,
  tag: Tag,
  context: StepContext,
): AsyncGenerator<Step, void, void> {
  const { signal, externalId } = context;
  const look = async () => toDelete(await parts.adapter.listInstances(signal), tag, externalId);
  for (const id of yield* found(parts, look, signal)) yield* end(parts, id, context);
}

/** Deletes one machine. A machine that does not exist is no error (docs/contract/launcher.md, "Attempts and deletions"). */
async function* end(
  parts: AdapterParts,
  externalId: ExternalId,
  context: StepContext,
): AsyncGenerator<Step, void, void> {
  const machine = parts.adapter.deleteMachine(externalId);
  // The stored id must stay unchanged: after a crash during this deletion it is the only reference to the machine.
  const kept = { ...context, externalId: machine.externalId ?? externalId };
  try {
    yield* drive(parts, machine, kept, DELETE_MS);
  } catch (error) {
    if (context.signal.aborted || !isNotFound(parts, error)) throw error;
  }
}

/** Whether the adapter's error means that the object is gone, after the translation of its errors. */
function isNotFound({ mapError, config }: AdapterParts, error: unknown): boolean {
  const typed = error instanceof DriverError ? error : mapError(error, config.name);
  return typed instanceof DriverError && typed.kind === "not-found";
}

/** Adopts a machine that is up already: an earlier process made it and died before it could record it. */
async function* keep(
  up: Instance,
  order: CreateOrder,
  { externalId }: StepContext,
): AsyncGenerator<Step, Machine, void> {
  if (externalId === null || idText(externalId) !== idText(up.externalId))
    yield { step: "keep", deadlineMs: CALL_MS, save: { externalId: up.externalId } };
  return describe(up, order);
}

/** The facts about an instance that the launcher records. */
function describe(instance: Instance, { hostname }: CreateOrder): Machine {
  const { metadata: _, ready: _ready, failed: _failed, deleted: _deleted, quota, ...machine } = instance;
  return { ...machine, hostname, resources: quota };
}

/** The instances with the tag that are not deleted. */
function ours(listed: readonly Instance[], tag: Tag): readonly Instance[] {
  return listed.filter(({ deleted, metadata }) => !deleted && sameNode(tagOf(metadata), tag));
}

/**
 * Ids of all machines of a tag. The stored id is included unless the list shows it with another tag: the machine may be too new to be
 * listed.
 */
function toDelete(listed: readonly Instance[], tag: Tag, stored: ExternalId | null): readonly ExternalId[] {
  const ids = ours(listed, tag).map(({ externalId }) => externalId);
  if (stored === null) return ids;
  const shown = named(listed, stored);
  if (shown === undefined || isOlder(shown.metadata, tag)) return [stored, ...ids];
  if (!shown.deleted && tagOf(shown.metadata) === null) throw new LostMetadata(idText(stored), tag.nodeId);
  return ids;
}

function named(listed: readonly Instance[], id: ExternalId): Instance | undefined {
  return listed.find(({ externalId }) => idText(externalId) === idText(id));
}
