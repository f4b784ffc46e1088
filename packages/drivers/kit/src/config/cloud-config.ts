import { defined } from "@nodeyard/runtime";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./compiled.ts";
import { type DriverConfig, driverConfig, type LoadContext } from "./driver-config.ts";
import {
  type ImageFacts,
  type ImageLists,
  type LabelImageKeys,
  labelImage,
  listImages,
  NO_CONNECTION,
  type ProviderImages,
} from "./images.ts";
import { type Level, type Own, ownOf, type Tables, tableOf } from "./levels.ts";
import { commonOf, compileLabels, compilePools } from "./pools.ts";
import type { Table, Values } from "./section.ts";
import type { Entry } from "./words.ts";

type LabelRead<L extends Table> = Entry<Values<L> & Pick<LabelConfig, "name">>;
type PoolRead<Q extends Table, L extends Table> = Entry<
  Values<Q> & Pick<PoolConfig, "name" | "limits"> & { readonly labels: readonly LabelRead<L>[] }
>;
type ProviderIn<P extends Table, Q extends Table, L extends Table, D extends Table, O> = Entry<
  Values<P> &
    Pick<ProviderConfig, "name"> &
    Pick<ProviderImages<Values<D>, unknown>, "diskimages"> & {
      readonly pools: readonly PoolRead<Q, L>[];
      readonly own: O;
    }
>;
type PoolIn<Q extends Table, L extends Table, O> = PoolRead<Q, L> & { readonly own: O };
type LabelIn<L extends Table, O> = LabelRead<L> & {
  readonly bootImage: LabelConfig["image"];
  readonly own: O;
};
type Made<Config, O> = Partial<Config> & { readonly own: O };

/**
 * What concerns several keys. Each function reports with `at.error`, and returns the driver's `own` with what it decides for the launcher.
 * Without a function, `own` are the values of the driver's keys. Outer levels are compiled first, and inner ones see their `own`.
 */
interface Compile<
  P extends Table,
  Q extends Table,
  L extends Table,
  D extends Table,
  C extends Table,
  F,
  PO,
  QO,
  LO,
> {
  readonly provider?: (
    provider: ProviderIn<P, Q, L, D, Own<"provider", P>>,
    context: LoadContext,
  ) => Made<ProviderConfig, PO>;
  /** What labels take over from their image. */
  readonly images?: ImageFacts<F, Values<D>, Values<C>, PO>;
  readonly pool?: (
    pool: PoolIn<Q, L, Own<"pool", Q>>,
    provider: ProviderIn<P, Q, L, D, PO>,
    context: LoadContext,
  ) => Made<PoolConfig, QO>;
  /** `own` of the label includes what it takes over from its image. */
  readonly label?: (
    label: LabelIn<L, Own<"label", L> & F>,
    pool: PoolIn<Q, L, QO>,
    provider: ProviderIn<P, Q, L, D, PO>,
    context: LoadContext,
  ) => Made<LabelConfig, LO>;
}

/** The compiled provider of a driver. */
export type ConfigOf<C extends DriverConfig> = NonNullable<ReturnType<C["load"]>>;
/** The driver's part of a level. */
export type OwnOf<C extends DriverConfig, L extends Level> =
  ConfigOf<C> extends ProviderConfig<infer P, infer Q, infer O>
    ? { readonly provider: P; readonly pool: Q; readonly label: O }[L]
    : never;

type None = Readonly<Record<never, never>>;

/** The configuration of a driver whose providers have pools with labels: schema, defaults and compiler. */
export function cloudConfig<
  P extends Table,
  Q extends Table,
  L extends Table = None,
  D extends Table = None,
  C extends Table = None,
  F = None,
  PO = Own<"provider", P>,
  QO = Own<"pool", Q>,
  LO = Own<"label", L> & F,
>(
  driver: string,
  tables: Tables<P, Q, L, D, C>,
  compile: Compile<P, Q, L, D, C, F, PO, QO, LO> = {},
): DriverConfig<ProviderConfig<PO, QO, LO>> {
  const table = tableOf(tables as Tables<Table, Table, Table, Table, Table>);
  return driverConfig(driver, table, (values, context) => {
    const read = { diskimages: [], cloudImages: [], ...values } as unknown as ReadProvider;
    const made = compileProvider(read, tables.images, compile as unknown as AnyCompile, context);
    return made as ProviderConfig<PO, QO, LO>;
  });
}

/** Values that a level may have; what a table lacks is undefined. */
interface Inherited {
  readonly hostKeyChecking?: boolean | null;
  readonly useInternalIp?: boolean | null;
}
type ReadLabel = Entry<Inherited & LabelImageKeys & Pick<Partial<LabelConfig>, "consoleLog" | "connection">>;
type ReadPool = Entry<
  Inherited &
    Pick<PoolConfig, "name" | "limits" | "priority" | "nodeAttributes" | "ignoreProviderQuota"> & {
      readonly labels?: readonly ReadLabel[];
      readonly availabilityZones?: readonly string[];
    }
>;
type ReadProvider = Entry<
  Inherited &
    Omit<ProviderConfig, "pools" | "own"> &
    ProviderImages<object, object> & { readonly pools: readonly ReadPool[] }
>;
/** The same as `Compile`, inside of which the types of one driver's tables are not known. */
interface AnyCompile {
  readonly provider?: (provider: object, context: LoadContext) => Made<ProviderConfig, unknown>;
  readonly images?: ImageFacts<object, object, object, unknown>;
  readonly pool?: (pool: object, provider: object, context: LoadContext) => Made<PoolConfig, unknown>;
  readonly label?: (
    label: object,
    pool: object,
    provider: object,
    context: LoadContext,
  ) => Made<LabelConfig, unknown>;
}

function compileProvider(
  read: ReadProvider,
  images: Tables<unknown, unknown, unknown, unknown, unknown>["images"],
  compile: AnyCompile,
  context: LoadContext,
): ProviderConfig {
  const own = ownOf("provider", read);
  const made = compile.provider?.({ ...read, own }, context) ?? { own };
  const provider = { ...read, own: made.own };
  const facts = compile.images ?? { none: {}, cloudImage: () => ({}) };
  const lists = images && listImages(provider, context, images, facts);
  const pools = compilePools(provider, (pool) => compilePool(pool, provider, lists, compile, context));
  return { ...commonOf(read), ...made, pools };
}

/** Of labels whose machines are not made from images. */
const NO_IMAGE = { own: {}, image: null, connection: NO_CONNECTION };

function compilePool(
  read: ReadPool,
  provider: ReadProvider,
  lists: ImageLists<object> | undefined,
  compile: AnyCompile,
  context: LoadContext,
) {
  const { labels = [], availabilityZones = [], ignoreProviderQuota, at } = read;
  const own = ownOf("pool", read);
  const made = compile.pool?.({ ...read, own }, provider, context) ?? { own };
  const pool = { ...read, own: made.own };
  return {
    labels: compileLabels({ at, labels }, context, (label) => {
      const image = lists === undefined ? NO_IMAGE : labelImage(label, lists, context);
      if (image === undefined) return undefined;
      const { own: facts, ...listed } = image;
      const own = { ...ownOf("label", label), ...facts };
      return {
        hostKeyChecking: label.hostKeyChecking ?? pool.hostKeyChecking ?? provider.hostKeyChecking ?? true,
        ...listed,
        ...defined({ consoleLog: label.consoleLog, connection: label.connection }),
        ...(compile.label?.({ ...label, bootImage: listed.image, own }, pool, provider, context) ?? { own }),
      };
    }),
    availabilityZones,
    useInternalIp: pool.useInternalIp ?? provider.useInternalIp ?? false,
    ...defined({ ignoreProviderQuota }),
    ...made,
  };
}
