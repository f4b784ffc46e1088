import type { CreateOrder } from "../order.ts";
import { type AnyCompile, compileProvider, type Made, type ReadProvider } from "./compile-levels.ts";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./compiled.ts";
import { type DriverConfig, driverConfig, type LoadContext } from "./driver-config.ts";
import type { ImageFacts, ProviderImages } from "./images.ts";
import { type Level, type Own, type Tables, tableOf } from "./levels.ts";
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
  /** As in `Types`. */
  readonly typeOf?: (label: LabelConfig<LO>) => string;
}

/** The compiled provider of a driver. */
export type ConfigOf<C extends DriverConfig> = NonNullable<ReturnType<C["load"]>>;
/** The driver's part of a level. */
export type OwnOf<C extends DriverConfig, L extends Level> =
  ConfigOf<C> extends ProviderConfig<infer P, infer Q, infer O>
    ? { readonly provider: P; readonly pool: Q; readonly label: O }[L]
    : never;

/** A launch's order as a driver reads it, in the place of `CreateOrder`. */
export type OrderOf<C extends DriverConfig> = CreateOrder<OwnOf<C, "label">, OwnOf<C, "pool">>;

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
  const config = driverConfig(driver, table, (values, context) => {
    const read = { diskimages: [], cloudImages: [], ...values } as unknown as ReadProvider;
    const made = compileProvider(read, tables.images, compile as unknown as AnyCompile, context);
    return made as ProviderConfig<PO, QO, LO>;
  });
  return { ...config, typeOf: (compile as AnyCompile).typeOf };
}
