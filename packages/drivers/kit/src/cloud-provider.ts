import { present } from "@nodeyard/runtime";
import type { MapError } from "./calls.ts";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./config/compiled.ts";
import type { Provider, Resource } from "./contract.ts";
import { type ProviderMethods, provide } from "./decorate.ts";
import { type MachineWork, machineSteps } from "./machine-steps.ts";
import type { NodeMachines } from "./node-machines.ts";
import type { Offers, Pace } from "./offers.ts";
import { add, type Resources } from "./resources.ts";
import { type Suspends, suspensionSteps } from "./suspension-steps.ts";
import { type ExternalId, type ImageTag, type Metadata, type Tag, tagOf } from "./tags.ts";

/** A thing beside machines, as a listing shows it: an address, a disk, an interface, an uploaded image. */
export interface FoundPart {
  readonly id: string;
  /** As in `Resource`. Default: the name of the part that listed it. */
  readonly type?: string;
  /** Ids of the machines and of the other parts that it is attached to: an address to an interface, the interface to a machine. */
  readonly on?: readonly (string | null | undefined)[];
  /** Whose it is, by its own tag or by evidence; null, the default: nothing says so, or it must not be deleted now. */
  readonly tag?: Tag | null;
  /** Whose upload made it; null: an image of others, which no listing shows. */
  readonly imageTag?: ImageTag | null | undefined;
  /** Its use of the quota. Default: none. */
  readonly resources?: Resources;
}

/** A kind of things beside machines. */
export interface CloudPart {
  /** All that the credential can see. Absent: another part lists these, too. Rejects rather than resolve to some of them. */
  readonly list?: (signal: AbortSignal) => Promise<readonly FoundPart[]>;
  /** Deletes one. One that is gone is no error. */
  readonly delete: (id: string, signal: AbortSignal) => Promise<unknown>;
}

/** What a cloud says about its machines and about what stands beside them, for the judgement of a listing. */
export interface Listing<T> {
  /** The use of the quota of a listed machine, without its parts, which count with it. It is asked for all machines at once. */
  amounts(machine: T, signal: AbortSignal): Resources | Promise<Resources>;
  /** Ids of parts of a machine that do not name it themselves. */
  readonly partsOf?: (machine: T) => readonly (string | undefined)[];
  /** Whether a machine that still runs is taken back by the cloud, so that nobody may get it. */
  readonly isEnding?: (machine: T) => boolean;
  /** The type of what is listed among machines and, without a tag, is none: a namespace of others. Default: all are machines. */
  readonly untagged?: string;
}

/** What a cloud says of itself. Of this the kit makes a provider; the cloud writes no step, loop or timer. */
export interface Cloud<T, Part = undefined, Machines = NodeMachines<T>>
  extends MachineWork<T, Part, Machines>,
    Listing<T>,
    Pick<Provider, "quota" | "place">,
    Pick<Offers, "images" | "prices" | "handover"> {
  /** Kinds of things beside machines, by their type in `Resource`. */
  readonly parts?: Readonly<Record<string, CloudPart>>;
  /** As `Provider.need`, for a label of this driver. */
  need(label: LabelConfig<never>, signal: AbortSignal): Promise<Resources>;
  /** How machines are put aside. Absent: they cannot be. */
  readonly suspends?: Suspends<T>;
  /** The end of a machine's console; null: it has none. */
  readonly console?: (id: string, signal: AbortSignal) => Promise<string | null>;
  /** As in `Zones`. */
  zones?(pool: PoolConfig<never, never>, signal: AbortSignal): Promise<readonly string[]>;
  /** As in `Types`. */
  typeOf?(label: LabelConfig<never>): string;
  /** The rate limit that an operator needs to see: that of launches and removals. */
  readonly limiter?: Pace;
  /** Looks whether credentials and network work, before the provider is given out. Its signal never aborts: calls have limits of their own. */
  check(signal: AbortSignal): Promise<void>;
  /** Ends what is shared and what runs in the background, when the calls of the provider have ended. */
  close?(): void | Promise<void>;
}

/**
 * Opens a provider of a cloud whose machines carry metadata. `make` does no I/O; its signal aborts when the provider is closed. Rejects with
 * a DriverError, by `mapError`, as all calls of the provider do; what was opened is closed then.
 */
export function cloudProvider<T, Part = undefined>(
  config: ProviderConfig,
  mapError: MapError,
  make: (closed: AbortSignal) => Cloud<T, Part>,
): Promise<Provider> {
  return openProvider(config.name, mapError, (closed) => {
    const cloud = make(closed);
    return {
      ...cloudMethods(config, cloud),
      check: cloud.check,
      async close() {
        cloud.machines.close();
        await cloud.close?.();
      },
      async quota(signal) {
        // When every pool ignores the cloud's quota, the cloud is not asked.
        return config.pools.every(({ ignoreProviderQuota }) => ignoreProviderQuota)
          ? {}
          : cloud.quota(signal);
      },
    };
  });
}

/** Methods of a provider, and how it is opened and closed. */
export type OpenMethods = Omit<ProviderMethods, "close"> & Required<Pick<Cloud<never>, "check" | "close">>;

/** The same for a cloud whose machines are none of `NodeMachines`: `make` gives the methods themselves. */
export async function openProvider(
  name: string,
  mapError: MapError,
  make: (closed: AbortSignal) => OpenMethods,
): Promise<Provider> {
  const closed = new AbortController();
  let provider: Provider | undefined;
  try {
    const { check, ...methods } = make(closed.signal);
    const close = async () => {
      closed.abort(new Error(`provider ${name} is closed`));
      await methods.close();
    };
    provider = provide(name, { ...methods, close }, mapError);
    await check(new AbortController().signal);
    return provider;
  } catch (error) {
    await provider?.close();
    throw mapError(error, name);
  }
}

/** Methods for the machines of a provider, or of one of its places where a cloud has no list of all. No I/O. */
export function cloudMethods<T, Part>(
  config: ProviderConfig,
  cloud: Omit<Cloud<T, Part>, "quota" | "check" | "close">,
) {
  const { machines, parts = {}, console, place, images, prices, handover, limiter } = cloud;
  const { idOf, idIn, hasEnded, externalIdOf = idOf } = machines.cloud;
  const steps = machineSteps(config, cloud);
  return {
    ...{ ...steps, ...(place && { place }) },
    offers: {
      ...present({ images, prices, handover }),
      ...(cloud.suspends && { suspension: suspensionSteps(config, cloud, cloud.suspends) }),
      ...(cloud.zones && {
        zones: { list: async (pool, signal) => cloud.zones!(pool as PoolConfig<never, never>, signal) },
      }),
      ...(cloud.typeOf && { types: { of: (label) => cloud.typeOf!(label as LabelConfig<never>) } }),
      ...(limiter && { pace: { now: () => limiter } }),
      ...(console && {
        console: {
          async read(tag, { externalId, signal }) {
            const found = await machines.existing(tag, externalId, signal);
            return found === undefined || hasEnded(found) ? null : console(idOf(found), signal);
          },
        },
      }),
    },
    async find(tag, signal, stored = null) {
      const found = await machines.find(tag, stored, signal);
      return found && externalIdOf(found);
    },
    async list(signal) {
      const lists = Object.entries(parts).map(async ([type, { list }]) =>
        ((await list?.(signal)) ?? []).map((part) => ({ type, ...part })),
      );
      // Images that nobody uploaded from here are none of ours.
      const beside = (await Promise.all(lists)).flat().filter(({ imageTag }) => imageTag !== null);
      // Machines are listed last, so that parts of one that is made meanwhile find it in the list.
      const listed = [...(await machines.watch.whole(signal)).values()];
      const used = listed.map(async (one) => [one, await cloud.amounts(one, signal)] as const);
      const known = new Map(await Promise.all(used));
      const amounts = (machine: T) => known.get(machine)!;
      return listedResources(listed, beside, { ...cloud, ...machines.cloud, amounts });
    },
    /** A machine goes after what `first` removes, and is not waited for. What `last` would remove is a part, which is then listed alone. */
    async removeResource({ type, id, tag }, signal) {
      const name = idIn(id);
      // An id in a form that no version of the driver stores cannot be one of its resources.
      if (name === undefined) return;
      const part = parts[type];
      if (part !== undefined) return void (await part.delete(name, signal));
      const context = { signal, externalId: id };
      if (tag !== null) for await (const _ of cloud.first?.(tag, undefined, context) ?? []);
      await machines.delete(name, signal);
    },
    need: (label, signal) => cloud.need(label as LabelConfig<never>, signal),
  } satisfies Omit<OpenMethods, "quota" | "check" | "close">;
}

/** The type (`offers.types`) of machines of one kind in one market, which fail together. */
export function marketType(type: string, isSpot: boolean): string {
  return isSpot ? `${type}, spot` : type;
}

/** Attachments from a part to its machine: an address on an interface on a machine has two. More are a circle. */
const MOST_ATTACHMENTS = 4;

/**
 * The resources of a listing. A part of a listed machine counts with it and is left out, because it goes with it: one leaked node is one
 * leak. What nothing says about whose it is has no tag, so it is never deleted (rule 5).
 *
 * The lists are of different moments. A part whose machine came after the list of machines must not look like a leak, which is why
 * machines are listed last. The sweep decides by the tag whether the node still exists.
 */
export function listedResources<T>(
  listed: readonly T[],
  parts: readonly (FoundPart & { readonly type: string })[],
  cloud: Pick<Listing<T>, "partsOf" | "isEnding" | "untagged"> & {
    readonly idOf: (machine: T) => string;
    readonly externalIdOf?: (machine: T) => ExternalId;
    readonly metadataOf: (machine: T) => Metadata;
    readonly hasEnded?: (machine: T) => boolean;
    readonly amounts: (machine: T) => Resources;
  },
): readonly Resource[] {
  const { idOf, externalIdOf = idOf, metadataOf, hasEnded, isEnding, amounts, partsOf = () => [] } = cloud;
  const { untagged = "instance" } = cloud;
  const machines = new Set(listed.map(idOf));
  const holders = new Map(listed.flatMap((machine) => partsOf(machine).map((id) => [id, idOf(machine)])));
  const byId = new Map(parts.map((part) => [part.id, part]));
  const machineOf = ({ id, on = [] }: FoundPart, most = MOST_ATTACHMENTS): string | undefined => {
    for (const one of [holders.get(id), ...on]) {
      if (!one) continue;
      if (machines.has(one)) return one;
      const further = most > 0 ? byId.get(one) : undefined;
      const machine = further && machineOf(further, most - 1);
      if (machine !== undefined) return machine;
    }
    return undefined;
  };
  const used = new Map<string, Resources>();
  const alone = parts.flatMap((part): readonly Resource[] => {
    const { type, id, tag = null, imageTag, resources = {} } = part;
    const machine = machineOf(part);
    if (machine === undefined) return [{ type, id, tag, ...(imageTag && { imageTag }), resources }];
    used.set(machine, add(used.get(machine) ?? {}, resources));
    return [];
  });
  const instances = listed.map((machine): Resource => {
    const ended = hasEnded?.(machine) || isEnding?.(machine);
    const tag = tagOf(metadataOf(machine));
    return {
      type: tag === null ? untagged : "instance",
      id: externalIdOf(machine),
      tag,
      ...(ended && { ended }),
      resources: add(amounts(machine), used.get(idOf(machine)) ?? {}),
    };
  });
  return [...instances, ...alone];
}
