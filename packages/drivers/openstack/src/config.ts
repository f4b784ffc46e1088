import {
  anySeconds,
  bytes,
  CLOUD_NAME,
  cloudKeys,
  commonOf,
  compileCloudPools,
  compileImages,
  driverConfig,
  FROM_0,
  flag,
  group,
  inherited,
  integer,
  mapping,
  metadata,
  NOT_EMPTY,
  pattern,
  TEMPLATES,
  text,
  texts,
  type Values,
  whole,
} from "@nodeyard/driver";

/** Nova's schema of metadata, and of user data, of which it limits the base64. */
const PROPERTY = pattern("1 to 255 letters, digits and -_:. or blanks", /^[a-zA-Z0-9_:. -]{1,255}$/, [
  ["ci.owner"],
  ["a/b", ""],
]);
const PROPERTY_VALUE = pattern("at most 255 characters", /^[\s\S]{0,255}$/, [["x"], ["x".repeat(256)]]);
const USER_DATA = bytes(49_149);

/** A key of images: a provider's `diskimages` entry or `cloud-images` entry decides for the labels that boot it. */
const configDrive = {
  "config-drive": flag("Servers get a config drive.", { default: null, shown: "the cloud's default" }),
};

/** Keys of a pool beside the common ones. A label's `networks` replace the pool's. */
const poolTable = {
  networks: texts("Names or ids of the networks of servers.", {
    shown: "the cloud's default",
    like: CLOUD_NAME,
  }),
  "security-groups": texts("Names or ids.", { shown: "the project's default", like: CLOUD_NAME }),
  "auto-floating-ip": flag("Servers without a public address get a floating IP where the cloud has any.", {
    default: true,
  }),
};

/** Keys of a label beside those of every cloud (`cloudKeys`). */
const labelTable = {
  "key-name": text("Keypair of the cloud that servers get.", { like: CLOUD_NAME }),
  // Null: the root disk has the flavor's size.
  volumeSize: group({
    "boot-from-volume": flag("The root disk is a volume that goes with the server.", { default: false }),
    "volume-size": integer("Size of that volume.", { default: 50, unit: "GB", like: whole(1) }),
  }).map(({ bootFromVolume, volumeSize }) => (bootFromVolume ? volumeSize : null)),
  "instance-properties": metadata("Metadata of the server.", { keys: PROPERTY, like: PROPERTY_VALUE }),
  "dynamic-instance-properties": mapping("The same, from templates such as `{request.tenant_name}`.", {
    default: {} as Readonly<Record<string, unknown>>,
    keys: PROPERTY,
    ...TEMPLATES,
  }).as("dynamicProperties"),
  userdata: text("User data for cloud-init.", { like: USER_DATA }).secret().as("userData"),
  networks: texts("Names or ids; instead of the pool's, also when empty.", {
    ...inherited("the pool's"),
    like: CLOUD_NAME,
  }),
};

/** The keys of docs/contract/config.md, "OpenStack keys". */
const table = {
  cloud: text("Entry of clouds.yaml.", { needed: "validator", like: NOT_EMPTY }),
  "region-name": text("Region of the cloud, shown on nodes.", { like: NOT_EMPTY }).as("region"),
  // For this driver the seconds between two calls; for other drivers calls per second.
  rate: anySeconds(
    "At least this long between two calls; providers with one credential keep the strictest.",
    {
      shown: "as fast as the cloud takes it",
      unit: "s between calls",
      like: FROM_0,
      instead: "counts as 0",
    },
  )
    .as("intervalMs")
    .map((interval) => (interval === null ? null : Math.max(0, interval)))
    .differs("holds for all calls of all providers with one credential; Nodepool does not apply it."),
  "clean-floating-ips": flag(
    "Without effect: floating IPs that we made are always deleted with their node, others never.",
    { default: false },
  ).unused(),
  "port-cleanup-interval": integer(
    "0: ports that outlive their server are left alone; else they go with the leak sweep.",
    { default: 600, unit: "s", like: FROM_0, instead: "counts as 0" },
  )
    .as("portCleanup")
    .map((interval) => interval > 0)
    .differs("only whether it is 0 counts: ports are looked at when leaks are; in Nodepool this often."),
  ...cloudKeys({
    pool: poolTable,
    label: labelTable,
    diskimage: {
      meta: mapping("Properties of the upload, over the `metadata` of the diskimage.").unread(),
      ...configDrive,
    },
    cloudImage: configDrive,
  }),
};

/** What a label takes over from its image. A label whose image the provider does not list has neither. */
interface ImageFacts {
  /** For a cloud image: its id, or a name or id to look up. */
  readonly cloudImage: { readonly id: string } | { readonly name: string } | null;
  /** Null: the default of the cloud. */
  readonly configDrive: boolean | null;
}

/** The driver's part of a pool. */
export type OpenstackPoolOwn = Values<typeof poolTable>;

/** The driver's part of a label. `volumeSize` null: the server boots from the flavor's own disk. */
export interface OpenstackLabelOwn extends Omit<Values<typeof labelTable>, "networks">, ImageFacts {
  /** MiB; 0: only the flavor's name counts. */
  readonly minRam: number;
  readonly flavorName: string | null;
  /** Empty: the cloud's default network. */
  readonly networks: readonly string[];
}
/** The keys of an openstack provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const openstackConfig = driverConfig("openstack", table, (provider, context) => {
  const lists = compileImages(provider, context, {
    diskimage: ({ configDrive }): ImageFacts => ({ cloudImage: null, configDrive }),
    cloudImage: ({ imageId, imageName, configDrive }, name) => ({
      cloudImage: imageId === null ? { name: imageName ?? name } : { id: imageId },
      configDrive,
    }),
  });
  const none: ImageFacts = { cloudImage: null, configDrive: null };
  const { cloud, region, intervalMs, imageUploadTimeoutMs, portCleanup } = provider;
  return {
    ...commonOf(provider),
    pools: compileCloudPools(provider, { lists, none }, context, (label, image, pool): OpenstackLabelOwn => {
      const { at, name, minRam, flavorName, own } = label;
      // A warning only: Nodepool's validator accepts it. Launches fail with "has no size" (`chooseFlavor`).
      if (!at.has("min-ram") && !at.has("flavor-name"))
        at.useless(undefined, `label ${name} has no size; add min-ram or flavor-name`);
      return { ...own, ...image, minRam, flavorName, networks: own.networks ?? pool.networks };
    }),
    own: { cloud, region, intervalMs, imageUploadTimeoutMs, portCleanup },
  };
});

/** A compiled provider of the openstack driver. Names of cloud objects may also be ids. */
export type OpenstackProviderConfig = NonNullable<ReturnType<typeof openstackConfig.load>>;
