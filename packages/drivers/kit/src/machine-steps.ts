import type { LabelConfig, ProviderConfig } from "./config/compiled.ts";
import type { Provider } from "./contract.ts";
import { DriverError } from "./errors.ts";
import { idText } from "./leaks.ts";
import type { MakeCall, NodeMachines } from "./node-machines.ts";
import type { CreateOrder, Machine } from "./order.ts";
import type { Step, StepContext } from "./run-steps.ts";
import type { ExternalId, Tag } from "./tags.ts";

/** Milliseconds for one call, with its wait for the rate limit. */
export const CALL_MS = 120_000;
/** Milliseconds for a cloud to end a machine. */
export const GONE_MS = 600_000;

/** Steps that yield before each effect, as those of a driver. */
export type Steps<T> = AsyncGenerator<Step, T, void>;
/** A step's `save` for an external id: nothing when the record has it, since each save is a commit to the tree. */
export type Saving = (id: ExternalId) => Pick<Step, "save">;

/** Saves what is not in the record yet. `stored`: the id that is. */
export function savingAfter(stored: ExternalId | null): Saving {
  let last = stored;
  return (externalId) => {
    if (last !== null && idText(last) === idText(externalId)) return {};
    last = externalId;
    return { save: { externalId } };
  };
}

/** The error of a launch for which there is no image: that of the label is one of the builder, and not uploaded here yet. */
export function noImage({ name, image }: LabelConfig): DriverError {
  const why = `no upload of ${image?.name ?? "any image"} is ready`;
  return new DriverError("configuration", `label ${name} has no image here: ${why}`);
}

/**
 * What a cloud says of a machine that is up. Left out: its id, which the steps know; where clients connect, if it is the first of its addresses,
 * public before private and IPv4 before IPv6; what it uses, if that is what its label needs, which the launcher has recorded.
 */
export type Described = Omit<Machine, "externalId" | "interfaceIp"> & Partial<Pick<Machine, "interfaceIp">>;

/**
 * What a cloud says beyond its machines, for the steps of a launch and of a removal. `Part`: what it makes before a machine; `Machines`: a
 * `MachineTable` where the kit opens the provider (`cloudDriver`).
 */
export interface MachineWork<T, Part = undefined, Machines = NodeMachines<T>> {
  readonly machines: Machines;
  /** Milliseconds for `make` and its call. Default `CALL_MS`. */
  readonly makeMs?: number;
  /** Steps for what a machine needs before it is made. `found`: the machine of an earlier attempt. */
  before?(order: CreateOrder, found: T | undefined, saving: Saving, context: StepContext): Steps<Part>;
  /** Looks up what the call needs. The call itself goes on when the launch is given up, because the cloud goes on as well. */
  make(order: CreateOrder, part: Part | undefined, signal: AbortSignal): Promise<MakeCall>;
  /** The form in which the record keeps the ids. Default: the id. */
  stored?(id: string, part: Part | undefined): ExternalId;
  /** Steps that give a machine that is up an address of its own, and its text; null: it needs none. */
  expose?(order: CreateOrder, machine: T, signal: AbortSignal): Steps<string | null>;
  /** The facts of a machine that is up. `address`: that of `expose`. */
  describe(
    order: CreateOrder,
    machine: T,
    address: string | null,
    signal: AbortSignal,
  ): Described | Promise<Described>;
  /** Steps before the deletion of a machine, which may be gone already, or may not have been looked for. */
  first?(tag: Tag, machine: T | undefined, context: StepContext): Steps<void>;
  /** Steps when the machine is gone. What they remove is also one of the cloud's `parts`, because a leak sweep does not wait for machines. */
  last?(tag: Tag, context: StepContext): Steps<void>;
}

/** The facts of a machine that is up, after the steps that give it an address. */
export async function* machineOf<T, Part>(
  work: MachineWork<T, Part>,
  order: CreateOrder,
  machine: T,
  signal: AbortSignal,
): Steps<Machine> {
  const { idOf, externalIdOf = idOf } = work.machines.cloud;
  const address = work.expose ? yield* work.expose(order, machine, signal) : null;
  const said = await work.describe(order, machine, address, signal);
  const { publicIpv4, publicIpv6, privateIpv4, privateIpv6 } = said;
  const interfaceIp = publicIpv4 ?? publicIpv6 ?? privateIpv4 ?? privateIpv6 ?? null;
  return { externalId: externalIdOf(machine), interfaceIp, ...said };
}

/**
 * `create` and `remove` of a provider whose machines are found by their metadata. Steps of a launch: find, discard (only a machine that has
 * failed), those of `before`, one with the name of a machine, wait, those of `expose`. Steps of a removal: find, those of `first`, delete and
 * gone (if there is a machine), those of `last`. Repeated after a crash, both begin at the top and go on with what they find.
 */
export function machineSteps<T, Part = undefined>(
  { name, launchTimeoutMs }: Pick<ProviderConfig, "name" | "launchTimeoutMs">,
  work: MachineWork<T, Part>,
): Pick<Provider, "create" | "remove"> {
  const { machines, makeMs = CALL_MS, stored: idFor = (id) => id } = work;
  const { idOf, hasFailed, what } = machines.cloud;
  const placeOf = ({ nodeId }: Tag) => `${name}: node ${nodeId}`;

  async function* create(order: CreateOrder, context: StepContext): Steps<Machine> {
    const { signal } = context;
    const place = placeOf(order.tag);
    const saving = savingAfter(context.externalId);
    // An interrupted attempt may have made the machine already. One that has failed is deleted first: a tag must not have two machines.
    yield { step: "find", deadlineMs: CALL_MS };
    let found = await machines.existing(order.tag, context.externalId, signal);
    if (found !== undefined && hasFailed(found)) {
      yield { step: "discard", deadlineMs: GONE_MS };
      await machines.delete(idOf(found), signal);
      await machines.gone(idOf(found), place, signal, found);
      found = undefined;
    }
    const part = work.before && (yield* work.before(order, found, saving, context));
    let id = found && idOf(found);
    if (id === undefined) {
      yield { step: what, deadlineMs: makeMs };
      id = await machines.create(order.tag, await work.make(order, part, signal), signal);
    }
    // The id is saved with the yield of "wait". A launcher that dies before that finds the machine by its tag.
    const externalId = idFor(id, part);
    yield { step: "wait", deadlineMs: launchTimeoutMs, ...saving(externalId), onlyLooks: true };
    const machine = await machines.up(id, place, signal);
    return { ...(yield* machineOf(work, order, machine, signal)), externalId };
  }

  async function* remove(tag: Tag, context: StepContext): Steps<void> {
    const { signal } = context;
    yield { step: "find", deadlineMs: CALL_MS };
    const found = await machines.existing(tag, context.externalId, signal);
    if (work.first) yield* work.first(tag, found, context);
    if (found !== undefined) {
      const id = idOf(found);
      yield { step: "delete", deadlineMs: GONE_MS };
      await machines.delete(id, signal);
      yield { step: "gone", deadlineMs: GONE_MS };
      await machines.gone(id, placeOf(tag), signal, found);
    }
    if (work.last) yield* work.last(tag, context);
    machines.forget(tag);
  }

  return { create, remove };
}
