import {
  ABSOLUTE,
  CLOUD_NAME,
  choice,
  commonOf,
  compileImages,
  compileLabels,
  compilePools,
  driverConfig,
  entries,
  flag,
  group,
  imageKeys,
  inherited,
  integer,
  LIMIT,
  labelImage,
  launchKeys,
  mapping,
  metadata,
  type PoolConfig,
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

const SERVER = pattern(
  "an absolute path of a socket, or https://HOST:PORT",
  /^(\/.+|https:\/\/[^/\s]+\/?)$/,
  [
    ["/var/lib/lxd/unix.socket", "https://lxd.example.org:8443"],
    ["http://lxd:8443", "lxd", "unix:///x"],
  ],
);
const REMOTE = pattern("an address, as in https://images.example.org", /^https:\/\/[^\s]+$/, [
  ["https://images.example.org", "https://lxd.example.org:8443"],
  ["images", "http://images.example.org"],
]);
/** What LXD calls a valid name of a project: it becomes a part of paths. */
const PROJECT = pattern("a name without blanks and slashes", /^[^\s/]{1,63}$/, [
  ["default"],
  ["a/b", "a b", ""],
]);
/** Keys that the driver writes itself: a file that sets them would hide a node from its launcher. */
const OWN_KEYS = /^(user\.(nodepool|nodeyard)_|volatile\.|cloud-init\.user-data$)/;

/** Keys of a provider that this driver alone has. */
const ownTable = {
  server: text(
    "Socket of the server on this host, or its address. An address needs `client-certificate` and `client-key`.",
    { default: "/var/lib/lxd/unix.socket", like: SERVER },
  ),
  "client-certificate": text("PEM file of the certificate that the server trusts; absolute path.", {
    like: ABSOLUTE,
  }).names("file"),
  "client-key": text("PEM file of its private key; absolute path.", { like: ABSOLUTE }).names("file"),
  "server-certificate": text(
    "PEM file of the server's own certificate, which is then the only one that counts.",
    {
      shown: "the authorities of this host",
      like: ABSOLUTE,
    },
  ).names("file"),
  project: text("Project of the machines and of their images.", { default: "default", like: PROJECT }),
};

/** Keys of an entry of `cloud-images`. */
const imageTable = {
  image: text("Alias or fingerprint of an image; not together with `copy-of`.", {
    shown: "the entry's name",
    like: CLOUD_NAME,
  }),
  remote: text("Image server from which the server downloads `image` before its first use.", {
    like: REMOTE,
  }),
  "remote-protocol": choice("`simplestreams`: a server of images. `lxd`: another LXD or Incus.", [
    "simplestreams",
    "lxd",
  ]),
  "remote-certificate": text(
    "PEM file of the remote's certificate, if no authority signed it; absolute path.",
    {
      like: ABSOLUTE,
    },
  ).names("file"),
  "copy-of": text(
    "Instance, or `instance/snapshot`, that machines are copies of, for what takes long to prepare. All of its files are copied, host keys included.",
    {
      like: pattern("an instance, or instance/snapshot", /^[a-zA-Z0-9-]{1,63}(\/[^\s/]+)?$/, [
        ["base", "base/ready"],
        ["a/b/c", ""],
      ]),
    },
  ),
};

/** Keys of a label. */
const labelTable = {
  type: choice("What a machine is.", ["container", "virtual-machine"]),
  cores: integer("Processors (`limits.cpu`).", { shown: "what the profiles say", like: whole(1) }),
  ram: integer("Memory (`limits.memory`).", { shown: "what the profiles say", unit: "MiB", like: whole(1) }),
  profiles: texts("Profiles, in their order. They give a machine its disk and its network.", {
    default: ["default"],
    like: CLOUD_NAME,
  }),
  config: metadata("Further keys of the instance, such as `security.nesting`.").map((keys, at) => {
    for (const key of Object.keys(keys))
      if (OWN_KEYS.test(key))
        at.error("config", `has ${key}, which the driver writes; use the label's own keys`);
    return keys;
  }),
  devices: mapping("Devices by name, over those of the profiles.", {
    default: {} as Readonly<Record<string, unknown>>,
  }),
  userdata: text("User data for cloud-init.").secret().as("userData"),
};

const labels = {
  name: text("A top-level label.", { needed: true }),
  diskimage: text("A `diskimages` entry of this provider; exactly one of this and `cloud-image`."),
  "cloud-image": text("A `cloud-images` entry of this provider; exactly one of this and `diskimage`."),
  own: group(labelTable),
  "console-log": flag("Keep what a machine that does not come up wrote to its console.", { default: false }),
  "host-key-checking": flag("False: ready as soon as it has an address.", inherited("the pool's")),
};

const table = {
  own: group(ownTable),
  ...launchKeys({ launch: 600, boot: 120 }),
  ...uploadKeys,
  ...imageKeys(
    { diskimage: { meta: mapping("Properties of the image.").unread() }, cloudImage: imageTable },
    {
      description: "Images that the server or a remote has.",
      named: true,
      rules: [
        [
          (value) => value.image === undefined || value["copy-of"] === undefined,
          "has both image and copy-of; keep one",
        ],
      ],
    },
  ),
  pools: entries(
    section({
      ...poolKeys({
        "max-cores": integer("Processors at once.", LIMIT).as("cores"),
        "max-ram": integer("Memory at once.", { ...LIMIT, unit: "MiB" }).as("ram"),
      }),
      "availability-zones": texts("Members of the cluster; one is chosen per request.", {
        default: [],
        shown: "all that are online",
        like: CLOUD_NAME,
      }),
      "host-key-checking": flag("False: ready as soon as it has an address.", { default: true }),
      labels: entries(section(labels), "What the pool offers."),
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
/** A compiled pool of the lxd driver. */
export type LxdPoolConfig = PoolConfig<undefined, LxdLabelOwn>;

/** The keys of an lxd provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const lxdConfig = driverConfig("lxd", table, (provider, context): LxdProviderConfig => {
  const { own, at: of } = provider;
  const files = ["client-certificate", "client-key"];
  const missing = own.server.startsWith("/") ? [] : files.filter((key) => !of.has(key));
  for (const key of missing) of.error(key, `is missing, and ${own.server} is reached by certificates only`);
  const images = compileImages(provider, context, {
    diskimage: (): LxdImage | null => null,
    cloudImage: (one, name) => ({ ...one, image: one.image ?? name }),
  });
  const pools = compilePools(provider, (pool) => ({
    availabilityZones: pool.availabilityZones,
    labels: compileLabels(pool, context, (label) => {
      const { at, consoleLog } = label;
      if (at.has("diskimage") === at.has("cloud-image")) {
        at.error(undefined, "needs exactly one of diskimage and cloud-image");
        return undefined;
      }
      const { image, connection, own: listed } = labelImage(label, images, context, null);
      const hostKeyChecking = label.hostKeyChecking ?? pool.hostKeyChecking;
      return { hostKeyChecking, connection, consoleLog, image, own: { ...label.own, image: listed } };
    }),
    own: undefined,
  }));
  const { imageUploadTimeoutMs } = provider;
  return { ...commonOf(provider), pools, own: { ...own, imageUploadTimeoutMs } };
});
