import { type ConfigOf, cloudConfig, Key, type OwnOf, type PoolConfig } from "@nodeyard/driver";
import { fakeSection } from "./knobs.ts";

/** Size of a machine of Nodepool's fake cloud, for `Fake Flavor` and `Unreal Flavor` alike. */
const FLAVOR = { cores: 4, ram: 8192 };

/** Description of keys that files for OpenStack have. The driver takes the same files, so that a site can be tried without its cloud. */
const NOT_READ = "Accepted; nothing in a fake cloud reads it.";
const configDrive = { "config-drive": Key.flag(NOT_READ).unread() };

const pool = {
  networks: Key.texts("Names; `fake-ipv6-network-name` gives IPv6.", { default: [] }),
  "security-groups": Key.texts(NOT_READ).unread(),
  "auto-floating-ip": Key.flag("Accepted; a fake cloud has no floating addresses.", {
    default: true,
  }).unread(),
};

/** The keys of openstack (docs/contract/config.md, "OpenStack keys"), and `fake`, which only Nodeyard has. */
const provider = {
  cloud: Key.text("Name of the cloud; providers that name one cloud share it.", {
    needed: "validator",
    shown: "the provider's name",
  }),
  "region-name": Key.text("Region shown on nodes.").unread(),
  rate: Key.number("Accepted; a fake cloud needs no protection.", {
    default: 1,
    unit: "s between calls",
  }).unread(),
  "clean-floating-ips": Key.flag("Accepted; a fake cloud has no floating addresses.", {
    default: false,
  }).unread(),
  "port-cleanup-interval": Key.integer("Accepted; a fake cloud has no ports.", {
    default: 600,
    unit: "s",
  }).unread(),
  fake: Key.inner(fakeSection, "How the fake cloud behaves; Nodeyard's own."),
};

const label = {
  "key-name": Key.text("Accepted; a fake cloud has no keypairs.").unread(),
  "boot-from-volume": Key.flag("Accepted; a fake cloud has no volumes.", { default: false }).unread(),
  "volume-size": Key.integer("Accepted; a fake cloud has no volumes.", {
    default: 50,
    unit: "GB",
  }).unread(),
  "instance-properties": Key.mapping(NOT_READ).unread(),
  "dynamic-instance-properties": Key.mapping(NOT_READ).unread(),
  userdata: Key.text(NOT_READ).unread(),
  networks: Key.texts("Networks of the node.", { default: [], shown: "the pool's" }).unread(),
};

const diskimage = {
  meta: Key.metadata('Metadata of the upload; `SHOULD_FAIL: "true"` makes every launch from it fail.'),
  ...configDrive,
};

/** The driver's part of a provider. */
export interface FakeProviderOwn extends Omit<ReturnType<typeof fakeSection.defaults>, "images"> {
  /** Providers of one process with the same name share one cloud. */
  readonly cloud: string;
  /** Folder of uploaded images; absent: the cloud accepts no uploads. */
  readonly images?: { readonly folder: string; readonly formats: readonly string[] };
}

/** The driver's part of a label. Sizes only count for quotas; nothing runs. */
export interface FakeLabelOwn {
  /** The flavor, for labels with offerings, which it tells apart; else the label alone is what a machine is bought as. */
  readonly type?: string | undefined;
  /** Resources of a node besides `instances: 1`. */
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  /** Properties of the image; `SHOULD_FAIL: "true"` makes every launch fail. */
  readonly imageProperties: Readonly<Record<string, string>>;
}
/** The keys of a fake provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const fakeConfig = cloudConfig(
  "fake",
  Key.flavorCloud({ provider, pool, label, diskimage, cloudImage: configDrive }),
  {
    provider({ name, own: { cloud, fake } }): { own: FakeProviderOwn } {
      const { images, ...knobs } = fake;
      return { own: { cloud: cloud ?? name, ...knobs, ...(images === null ? {} : { images }) } };
    },
    images: {
      none: { meta: {} as Readonly<Record<string, string>> },
      diskimage: ({ meta }) => ({ meta }),
      cloudImage: () => ({ meta: {} }),
    },
    // `min-ram` can only make the machine larger: the fake cloud has one flavor of each size that is asked for.
    label: ({ at, own: { flavorName, minRam, meta } }): { own: FakeLabelOwn } => ({
      own: {
        ...(at.has("offerings") && { type: `${flavorName}` }),
        ...{ cores: FLAVOR.cores, ram: Math.max(FLAVOR.ram, minRam), imageProperties: meta },
      },
    }),
    typeOf: ({ name, own: { type = name } }) => type,
  },
);

/** A compiled provider of the fake driver. */
export type FakeProviderConfig = ConfigOf<typeof fakeConfig>;
/** `fake-ipv6-network-name` and `no-auto-ip-network-name` decide which addresses machines get. */
export type FakePoolOwn = OwnOf<typeof fakeConfig, "pool">;
/** A compiled pool of the fake driver. */
export type FakePoolConfig = PoolConfig<FakePoolOwn, FakeLabelOwn>;
