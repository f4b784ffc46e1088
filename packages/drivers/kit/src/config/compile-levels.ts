import { defined } from "@nodeyard/runtime";
import { launchKeys } from "./common-keys.ts";
import type { LabelConfig, LabelOffering, LabelReuse, PoolConfig, ProviderConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import {
  type ImageFacts,
  type ImageLists,
  type ImageTables,
  type LabelImageKeys,
  labelImage,
  listImages,
  NO_CONNECTION,
  type ProviderImages,
} from "./images.ts";
import { ownOf } from "./levels.ts";
import type { ReadOffering } from "./offerings.ts";
import { section } from "./section.ts";
import type { Entry } from "./words.ts";

/** Values that a level may have; what a table lacks is undefined. */
interface Inherited {
  readonly hostKeyChecking?: boolean | null;
  readonly useInternalIp?: boolean | null;
}
type ReadOne = Inherited &
  LabelImageKeys &
  Pick<Partial<LabelConfig>, "consoleLog" | "connection"> & {
    readonly reuse?: LabelReuse | null;
  };
type ReadLabel = Entry<ReadOne & { readonly offerings?: readonly ReadOffering<ReadOne>[] }>;
type ReadPool = Entry<
  Inherited &
    Pick<PoolConfig, "name" | "limits" | "nodeAttributes" | "ignoreProviderQuota"> & {
      readonly priority: number | undefined;
      readonly labels?: readonly ReadLabel[];
      readonly availabilityZones?: readonly string[];
    }
>;
export type ReadProvider = Entry<
  Inherited &
    Omit<ProviderConfig, "pools" | "own"> &
    ProviderImages<object, object> & { readonly pools: readonly ReadPool[] }
>;
/** What a function decides for the launcher, and the driver's part. */
export type Made<Config, Own = unknown> = Partial<Config> & { readonly own: Own };

/** The functions of a driver, by whose tables their types are not known here (`cloudConfig`). */
export interface AnyCompile {
  readonly provider?: (provider: object, context: LoadContext) => Made<ProviderConfig>;
  readonly images?: ImageFacts<object, object, object, unknown>;
  readonly pool?: (pool: object, provider: object, context: LoadContext) => Made<PoolConfig>;
  readonly label?: (label: object, pool: object, provider: object, context: LoadContext) => Made<LabelConfig>;
  readonly typeOf?: (label: LabelConfig) => string;
}

/** For a driver whose table lacks these keys. */
const LAUNCH = section(launchKeys({})).defaults();

/** A provider with its pools. Of several with one name the last counts, as in Nodepool. */
export function compileProvider(
  read: ReadProvider,
  images: ImageTables<unknown, unknown> | undefined,
  compile: AnyCompile,
  context: LoadContext,
): ProviderConfig {
  const own = ownOf("provider", read);
  const made = compile.provider?.({ ...read, own }, context) ?? { own };
  const provider = { ...read, own: made.own };
  const facts = compile.images ?? { none: {}, cloudImage: () => ({}) };
  const lists = images && listImages(provider, context, images, facts);
  const pools = new Map<string, PoolConfig>();
  for (const pool of read.pools) {
    if (pools.has(pool.name)) read.at.warn("pools", `lists pool ${pool.name} twice; the last one counts`);
    pools.set(pool.name, compilePool(pool, provider, lists, compile, context));
  }
  const { name, driver, maxConcurrency, priority, prices } = read;
  const { launchTimeoutMs, bootTimeoutMs, launchAttempts } = { ...LAUNCH, ...read };
  return {
    ...{ name, driver, maxConcurrency, priority, launchTimeoutMs, bootTimeoutMs, launchAttempts },
    ...(prices !== undefined && Object.keys(prices.perHour).length > 0 && { prices }),
    ...{ ...made, pools: [...pools.values()] },
  };
}

function compilePool(
  read: ReadPool,
  provider: ReadProvider,
  lists: ImageLists<object> | undefined,
  compile: AnyCompile,
  context: LoadContext,
): PoolConfig {
  const own = ownOf("pool", read);
  const made = compile.pool?.({ ...read, own }, provider, context) ?? { own };
  const pool = { ...read, own: made.own };
  const { name, limits, nodeAttributes, ignoreProviderQuota } = read;
  const availabilityZones = made.availabilityZones ?? read.availabilityZones ?? [];
  const labels = new Map<string, LabelConfig>();
  const compiled = (label: Entry<ReadOne>): LabelConfig | undefined => {
    const image = lists === undefined ? NO_IMAGE : labelImage(label, lists, context);
    if (image === undefined) return undefined;
    const { own: facts, ...listed } = image;
    const own = { ...ownOf("label", label), ...facts };
    const made = compile.label?.({ ...label, bootImage: listed.image, own }, pool, provider, context) ?? {
      own,
    };
    return {
      name: label.name,
      hostKeyChecking: label.hostKeyChecking ?? pool.hostKeyChecking ?? provider.hostKeyChecking ?? true,
      ...listed,
      ...defined({ consoleLog: label.consoleLog, connection: label.connection }),
      ...(label.reuse && { reuse: label.reuse }),
      ...made,
    };
  };
  for (const label of read.labels ?? []) {
    const { at, name } = label;
    const known = new Map<string, number>();
    const offerings = (label.offerings ?? []).flatMap(
      ({ at, label, ...offering }, index): LabelOffering[] => {
        const { zone } = offering;
        if (zone !== null && availabilityZones.length > 0 && !availabilityZones.includes(zone))
          at.error("zone", `is ${zone}, which is not a zone of pool ${read.name}; write one of its zones`);
        const made = compiled(label);
        if (made === undefined) return [];
        const type = compile.typeOf?.(made) ?? name;
        const key = JSON.stringify([type, zone]);
        // A node's record says type and zone of its offering, and nothing else of it.
        if (known.has(key))
          at.error(
            undefined,
            `is bought as ${type} in ${zone ?? "any zone"}, and so is offerings[${known.get(key)}]; remove one of them`,
          );
        else known.set(key, index);
        return [{ ...offering, label: made }];
      },
    );
    const config = label.offerings?.length ? offerings[0]?.label : compiled(label);
    if (config === undefined) continue;
    if (!context.labels.has(name))
      at.error("name", `names label ${name}, which is not in the top-level labels; add it there`);
    if (labels.has(name)) read.at.warn("labels", `defines label ${name} twice; the last one counts`);
    labels.set(name, offerings.length === 0 ? config : { ...config, offerings });
  }
  return {
    ...{ name, limits, nodeAttributes, availabilityZones, labels },
    priority: read.priority ?? provider.priority,
    useInternalIp: read.useInternalIp ?? provider.useInternalIp ?? false,
    ...defined({ ignoreProviderQuota }),
    ...made,
  };
}

/** Of labels whose machines are not made from images. */
const NO_IMAGE = { own: {}, image: null, connection: NO_CONNECTION };
