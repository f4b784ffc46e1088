import {
  type ConfigOf,
  cloudConfig,
  Is,
  Key,
  type LabelConfig,
  type OrderOf,
  type OwnOf,
} from "@nodeyard/driver";

/** Nova's schema of metadata, and of user data, of which it limits the base64. */
const PROPERTY = Is.pattern("1 to 255 letters, digits and -_:. or blanks", /^[a-zA-Z0-9_:. -]{1,255}$/, [
  ["ci.owner"],
  ["a/b", ""],
]);
const PROPERTY_VALUE = Is.pattern("at most 255 characters", /^[\s\S]{0,255}$/, [["x"], ["x".repeat(256)]]);
const USER_DATA = Is.bytes(49_149);

/** A key of images: a provider's `diskimages` entry or `cloud-images` entry decides for the labels that boot it. */
const configDrive = {
  "config-drive": Key.flag("Servers get a config drive.", { default: null, shown: "the cloud's default" }),
};

/** Keys of a pool beside the common ones. A label's `networks` replace the pool's. */
const pool = {
  networks: Key.texts("Names or ids of the networks of servers.", {
    shown: "the cloud's default",
    like: Is.CLOUD_NAME,
  }),
  "security-groups": Key.texts("Names or ids.", { shown: "the project's default", like: Is.CLOUD_NAME }),
  "auto-floating-ip": Key.flag(
    "Servers without a public address get a floating IP where the cloud has any.",
    {
      default: true,
    },
  ),
};

/** Keys of a label beside those of every cloud (`Key.flavorCloud`). */
const label = {
  "key-name": Key.text("Keypair of the cloud that servers get.", { like: Is.CLOUD_NAME }),
  // Null: the root disk has the flavor's size.
  volumeSize: Key.group({
    "boot-from-volume": Key.flag("The root disk is a volume that goes with the server.", {
      default: false,
    }),
    "volume-size": Key.integer("Size of that volume.", { default: 50, unit: "GB", like: Is.whole(1) }),
  }).map(({ bootFromVolume, volumeSize }) => (bootFromVolume ? volumeSize : null)),
  "instance-properties": Key.metadata("Metadata of the server.", { keys: PROPERTY, like: PROPERTY_VALUE }),
  "dynamic-instance-properties": Key.templates({ keys: PROPERTY }).as("dynamicProperties"),
  userdata: Key.userData("User data for cloud-init.", USER_DATA),
  networks: Key.texts("Names or ids; instead of the pool's, also when empty.", {
    ...Key.inherited("the pool's"),
    like: Is.CLOUD_NAME,
  }),
};

/** The keys of docs/contract/config.md, "OpenStack keys". */
const provider = {
  cloud: Key.text("Entry of clouds.yaml.", { needed: "validator", like: Is.NOT_EMPTY }),
  "region-name": Key.text("Region of the cloud, shown on nodes.", { like: Is.NOT_EMPTY }).as("region"),
  // For this driver the seconds between two calls; for other drivers calls per second.
  rate: Key.anySeconds(
    "At least this long between two calls; providers with one credential keep the strictest.",
    {
      shown: "as fast as the cloud takes it",
      unit: "s between calls",
      like: Is.FROM_0,
      instead: "counts as 0",
    },
  )
    .as("intervalMs")
    .map((interval) => (interval === null ? null : Math.max(0, interval)))
    .differs("holds for all calls of all providers with one credential; Nodepool does not apply it."),
  "clean-floating-ips": Key.flag(
    "Without effect: floating IPs that we made are always deleted with their node, others never.",
    {
      default: false,
    },
  ).unused(),
  "port-cleanup-interval": Key.integer(
    "0: ports that outlive their server are left alone; else they go with the leak sweep.",
    {
      default: 600,
      unit: "s",
      like: Is.FROM_0,
      instead: "counts as 0",
    },
  )
    .as("portCleanup")
    .map((interval) => interval > 0)
    .differs("only whether it is 0 counts: ports are looked at when leaks are; in Nodepool this often."),
};

const meta = Key.mapping("Properties of the upload, over the `metadata` of the diskimage.").unread();

/** What a label takes over from its image. A label whose image the provider does not list has neither. */
interface ImageFacts {
  /** For a cloud image: its id, or a name or id to look up. */
  readonly cloudImage: { readonly id: string } | { readonly name: string } | null;
  /** Null: the default of the cloud. */
  readonly configDrive: boolean | null;
}

const none: ImageFacts = { cloudImage: null, configDrive: null };

/** The keys of an openstack provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const openstackConfig = cloudConfig(
  "openstack",
  Key.flavorCloud({ provider, pool, label, diskimage: { meta, ...configDrive }, cloudImage: configDrive }),
  {
    images: {
      none,
      diskimage: ({ configDrive }): ImageFacts => ({ cloudImage: null, configDrive }),
      cloudImage: ({ imageId, imageName, configDrive }, name) => ({
        cloudImage: imageId === null ? { name: imageName ?? name } : { id: imageId },
        configDrive,
      }),
    },
    label({ at, name, own }, pool) {
      // A warning only: Nodepool's validator accepts it. Launches fail with "has no size" (`chooseFlavor`).
      if (!at.has("min-ram") && !at.has("flavor-name"))
        at.useless(undefined, `label ${name} has no size; add min-ram or flavor-name`);
      return { own: { ...own, networks: own.networks ?? pool.networks } };
    },
    typeOf: (label): string => machineType(label),
  },
);

/** A compiled provider of the openstack driver. Names of cloud objects may also be ids. */
export type OpenstackProviderConfig = ConfigOf<typeof openstackConfig>;
export type OpenstackPoolOwn = OwnOf<typeof openstackConfig, "pool">;
export type OpenstackLabelOwn = OwnOf<typeof openstackConfig, "label">;
export type OpenstackOrder = OrderOf<typeof openstackConfig>;

/** Labels with one flavor use the same hosts, so their launches fail together; volumes do not come from these hosts. */
export function machineType({ own }: Pick<LabelConfig<OpenstackLabelOwn>, "own">): string {
  const flavor = own.minRam > 0 ? `${own.flavorName ?? "any"}, ${own.minRam} MiB` : own.flavorName;
  return own.volumeSize === null ? `${flavor}` : `${flavor}, on a volume`;
}
