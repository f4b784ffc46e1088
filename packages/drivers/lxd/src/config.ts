import {
  ABSOLUTE,
  type About,
  atMostOne,
  CLOUD_NAME,
  choice,
  cloudLimits,
  commonOf,
  compileImages,
  compileLabels,
  compilePools,
  driverConfig,
  entries,
  flag,
  group,
  hasOneImage,
  imageKeys,
  imageLabelKeys,
  inherited,
  integer,
  labelImage,
  launchKeys,
  mapping,
  metadata,
  type ProviderConfig,
  pattern,
  poolKeys,
  section,
  text,
  texts,
  uploadKeys,
  type Values,
  whole,
} from "@nodeyard/driver";

const SERVER = pattern("an absolute path of a socket, or https://HOST:PORT", /^(\/|https:\/\/)[^\s]+$/, [
  ["/var/lib/lxd/unix.socket", "https://lxd.example.org:8443"],
  ["http://lxd:8443", "lxd", "unix:///x"],
]);
const REMOTE = pattern("an address, as in https://images.example.org", /^https:\/\/[^\s]+$/, [
  ["https://images.example.org", "https://lxd.example.org:8443"],
  ["images", "http://images.example.org"],
]);
/** Keys that the driver writes itself: a file that sets them would hide a node from its launcher. */
const OWN_KEYS = /^(user\.(nodepool|nodeyard)_|volatile\.|limits\.(cpu|memory)$|cloud-init\.user-data$)/;

const file = (description: string, about: About = {}) =>
  text(`PEM file of ${description}; absolute path.`, { ...about, like: ABSOLUTE }).names("file");

/** Keys of a provider that this driver alone has. */
const ownTable = {
  server: text(
    "Socket of the server on this host, or its address. An address needs `client-certificate` and `client-key`.",
    { default: "/var/lib/lxd/unix.socket", like: SERVER },
  ),
  "client-certificate": file("the certificate that the server trusts"),
  "client-key": file("its private key"),
  "server-certificate": file("the server's own certificate, which is then the only one that counts", {
    shown: "the authorities of this host",
  }),
  project: text("Project of the machines and of their images.", { default: "default", like: CLOUD_NAME }),
};

/** Keys of an entry of `cloud-images`. */
const imageTable = {
  image: text("Alias or fingerprint of an image; not together with `copy-of`.", {
    shown: "the entry's name",
    like: CLOUD_NAME,
  }),
  remote: text("Where the server downloads `image` before its first use.", { like: REMOTE }),
  "remote-protocol": choice("`simplestreams`: a server of images. `lxd`: another LXD or Incus.", [
    "simplestreams",
    "lxd",
  ]),
  "remote-certificate": file("the remote's certificate, if no authority signed it"),
  "copy-of": text(
    "Instance, or `instance/snapshot`, that machines are copies of, for what takes long to prepare. All of its files are copied, host keys included.",
    { like: CLOUD_NAME },
  ),
};

/** Keys of a label. */
const labelTable = {
  type: choice("What a machine is.", ["container", "virtual-machine"]),
  cores: integer("Processors (`limits.cpu`).", { default: 1, like: whole(1) }),
  ram: integer("Memory (`limits.memory`).", { default: 1024, unit: "MiB", like: whole(1) }),
  profiles: texts("Profiles, in their order. They give a machine its disk and its network.", {
    default: ["default"],
    like: CLOUD_NAME,
  }),
  config: metadata("Further keys of the instance, such as `security.nesting`.").map((keys, at) => {
    const own = Object.keys(keys).find((key) => OWN_KEYS.test(key));
    if (own !== undefined) at.error("config", `has ${own}, which the driver writes; leave it out`);
    return keys;
  }),
  devices: mapping("Devices by name, over those of the profiles.").map(
    (devices) => (devices ?? {}) as Readonly<Record<string, Readonly<Record<string, string>>>>,
  ),
  userdata: text("User data for cloud-init.").secret().as("userData"),
};

const table = {
  own: group(ownTable),
  ...launchKeys({ launch: 600, boot: 120 }),
  ...uploadKeys,
  ...imageKeys(
    { diskimage: { meta: mapping("Properties of the image.").unread() }, cloudImage: imageTable },
    {
      ...{ description: "Images that the server or a remote has.", named: true },
      rules: [atMostOne("image", "copy-of")],
    },
  ),
  pools: entries(
    section({
      ...poolKeys({ "max-cores": cloudLimits["max-cores"], "max-ram": cloudLimits["max-ram"] }),
      "availability-zones": texts("Members of the cluster; one is chosen per request.", {
        default: [],
        shown: "all that are online",
        like: CLOUD_NAME,
      }),
      "host-key-checking": flag("False: ready as soon as it has an address.", { default: true }),
      labels: entries(
        section({
          ...imageLabelKeys(labelTable),
          "host-key-checking": flag("False: ready as soon as it has an address.", inherited("the pool's")),
        }),
        "What the pool offers.",
      ),
    }),
    "What the provider offers, in pools.",
  ),
};

/** What machines are made of that no builder uploaded. */
export type LxdImage = Values<typeof imageTable>;
/** The driver's part of a provider. */
export type LxdProviderOwn = Values<typeof ownTable> & { readonly imageUploadTimeoutMs: number };
/** The driver's part of a label. `image`: null for an uploaded one. */
export interface LxdLabelOwn extends Values<typeof labelTable> {
  readonly image: LxdImage | null;
}
/** A compiled provider of the lxd driver. */
export type LxdProviderConfig = ProviderConfig<LxdProviderOwn, undefined, LxdLabelOwn>;
/** The keys of an lxd provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const lxdConfig = driverConfig("lxd", table, (provider, context): LxdProviderConfig => {
  const { own, at: of } = provider;
  for (const key of own.server.startsWith("/") ? [] : ["client-certificate", "client-key"])
    if (!of.has(key)) of.error(key, `is missing, and ${own.server} is reached by certificates only`);
  const images = compileImages(provider, context, {
    diskimage: (): LxdImage | null => null,
    cloudImage: (one, name) => ({ ...one, image: one.image ?? name }),
  });
  const pools = compilePools(provider, (pool) => ({
    availabilityZones: pool.availabilityZones,
    labels: compileLabels(pool, context, (label) => {
      if (!hasOneImage(label)) return undefined;
      const { image, connection, own: listed } = labelImage(label, images, context, null);
      const hostKeyChecking = label.hostKeyChecking ?? pool.hostKeyChecking;
      const own = { ...label.own, image: listed };
      return { hostKeyChecking, connection, consoleLog: label.consoleLog, image, own };
    }),
    own: undefined,
  }));
  const { imageUploadTimeoutMs } = provider;
  return { ...commonOf(provider), pools, own: { ...own, imageUploadTimeoutMs } };
});
