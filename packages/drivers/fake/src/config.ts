import {
  cloudKeys,
  commonOf,
  compileCloudPools,
  compileImages,
  driverConfig,
  flag,
  inner,
  integer,
  mapping,
  metadata,
  number,
  type PoolConfig,
  type ProviderConfig,
  text,
  texts,
  type Values,
} from "@nodeyard/driver";
import { fakeSection } from "./knobs.ts";

/** Size of a machine of Nodepool's fake cloud, for `Fake Flavor` and `Unreal Flavor` alike. */
const FLAVOR = { cores: 4, ram: 8192 };

/** Description of keys that files for OpenStack have. The driver takes the same files, so that a site can be tried without its cloud. */
const NOT_READ = "Accepted; nothing in a fake cloud reads it.";
const configDrive = { "config-drive": flag(NOT_READ).unread() };

const poolTable = {
  networks: texts("Names; `fake-ipv6-network-name` gives IPv6.", { default: [] }),
  "security-groups": texts(NOT_READ).unread(),
  "auto-floating-ip": flag("Accepted; a fake cloud has no floating addresses.", { default: true }).unread(),
};

/** The keys of openstack (docs/contract/config.md, "OpenStack keys"), and `fake`, which only Nodeyard has. */
const table = {
  cloud: text("Name of the cloud; providers that name one cloud share it.", {
    needed: "validator",
    shown: "the provider's name",
  }),
  "region-name": text("Region shown on nodes.").unread(),
  rate: number("Accepted; a fake cloud needs no protection.", {
    default: 1,
    unit: "s between calls",
  }).unread(),
  "clean-floating-ips": flag("Accepted; a fake cloud has no floating addresses.", {
    default: false,
  }).unread(),
  "port-cleanup-interval": integer("Accepted; a fake cloud has no ports.", {
    default: 600,
    unit: "s",
  }).unread(),
  ...cloudKeys({
    pool: poolTable,
    label: {
      "key-name": text("Accepted; a fake cloud has no keypairs.").unread(),
      "boot-from-volume": flag("Accepted; a fake cloud has no volumes.", { default: false }).unread(),
      "volume-size": integer("Accepted; a fake cloud has no volumes.", {
        default: 50,
        unit: "GB",
      }).unread(),
      "instance-properties": mapping(NOT_READ).unread(),
      "dynamic-instance-properties": mapping(NOT_READ).unread(),
      userdata: text(NOT_READ).unread(),
      networks: texts("Networks of the node.", { default: [], shown: "the pool's" }).unread(),
    },
    diskimage: {
      meta: metadata('Metadata of the upload; `SHOULD_FAIL: "true"` makes every launch from it fail.'),
      ...configDrive,
    },
    cloudImage: configDrive,
  }),
  fake: inner(fakeSection, "How the fake cloud behaves; Nodeyard's own."),
};

/** The driver's part of a provider. */
export interface FakeProviderOwn extends Omit<ReturnType<typeof fakeSection.defaults>, "images"> {
  /** Providers of one process with the same name share one cloud. */
  readonly cloud: string;
  /** Folder of uploaded images; absent: the cloud accepts no uploads. */
  readonly images?: { readonly folder: string; readonly formats: readonly string[] };
}
/** `fake-ipv6-network-name` and `no-auto-ip-network-name` decide which addresses machines get. */
export type FakePoolOwn = Values<typeof poolTable>;

/** The driver's part of a label. Sizes only count for quotas; nothing runs. */
export interface FakeLabelOwn {
  /** Resources of a node besides `instances: 1`. */
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  /** Properties of the image; `SHOULD_FAIL: "true"` makes every launch fail. */
  readonly imageProperties: Readonly<Record<string, string>>;
}
/** A compiled pool of the fake driver. */
export type FakePoolConfig = PoolConfig<FakePoolOwn, FakeLabelOwn>;
/** A compiled provider of the fake driver. */
export type FakeProviderConfig = ProviderConfig<FakeProviderOwn, FakePoolOwn, FakeLabelOwn>;

/** The keys of a fake provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const fakeConfig = driverConfig("fake", table, (provider, context): FakeProviderConfig => {
  const lists = compileImages(provider, context, {
    diskimage: ({ meta }) => meta,
    cloudImage: () => ({}),
  });
  const { images, ...fake } = provider.fake;
  return {
    ...commonOf(provider),
    pools: compileCloudPools(provider, { lists, none: {} }, context, ({ minRam }, imageProperties) => ({
      // `min-ram` can only make the machine larger: the fake cloud has one flavor of each size that is asked for.
      cores: FLAVOR.cores,
      ram: Math.max(FLAVOR.ram, minRam),
      imageProperties,
    })),
    own: { cloud: provider.cloud ?? provider.name, ...fake, ...(images === null ? {} : { images }) },
  };
});
