import { type About, type ConfigOf, cloudConfig, Is, Key, type OrderOf, type Values } from "@nodeyard/driver";

const SERVER = Is.pattern("an absolute path of a socket, or https://HOST:PORT", /^(\/|https:\/\/)[^\s]+$/, [
  ["/var/lib/lxd/unix.socket", "https://lxd.example.org:8443"],
  ["http://lxd:8443", "lxd", "unix:///x"],
]);
const REMOTE = Is.asIn(
  "an address",
  ["https://images.example.org", "https://lxd.example.org:8443"],
  /^https:\/\/[^\s]+$/,
  ["images", "http://images.example.org"],
);
/** Keys that the driver writes itself: a file that sets them would hide a node from its launcher. */
const OWN_KEYS = /^(user\.(nodepool|nodeyard)_|volatile\.|limits\.(cpu|memory)$|cloud-init\.user-data$)/;

const file = (description: string, about: About = {}) =>
  Key.text(`PEM file of ${description}; absolute path.`, { ...about, like: Is.ABSOLUTE }).names("file");

const provider = {
  ...Key.launchKeys({ launch: 600, boot: 120 }),
  ...Key.uploadKeys,
  server: Key.text(
    "Socket of the server on this host, or its address. An address needs `client-certificate` and `client-key`.",
    { default: "/var/lib/lxd/unix.socket", like: SERVER },
  ),
  "client-certificate": file("the certificate that the server trusts"),
  "client-key": file("its private key"),
  "server-certificate": file("the server's own certificate, which is then the only one that counts", {
    shown: "the authorities of this host",
  }),
  project: Key.text("Project of the machines and of their images.", {
    default: "default",
    like: Is.CLOUD_NAME,
  }),
};

const cloudImage = {
  image: Key.text("Alias or fingerprint of an image; not together with `copy-of`.", {
    shown: "the entry's name",
    like: Is.CLOUD_NAME,
  }),
  remote: Key.text("Where the server downloads `image` before its first use.", { like: REMOTE }),
  "remote-protocol": Key.choice("`simplestreams`: a server of images. `lxd`: another LXD or Incus.", [
    "simplestreams",
    "lxd",
  ]),
  "remote-certificate": file("the remote's certificate, if no authority signed it"),
  "copy-of": Key.text(
    "Instance, or `instance/snapshot`, that machines are copies of, for what takes long to prepare. All of its files are copied, host keys included.",
    { like: Is.CLOUD_NAME },
  ),
};

const pool = {
  limits: Key.limits(Key.sizeLimits),
  "availability-zones": Key.texts("Members of the cluster; one is chosen per request.", {
    default: [],
    shown: "all that are online",
    like: Is.CLOUD_NAME,
  }),
  "host-key-checking": Key.flag("False: ready as soon as it has an address.", { default: true }),
};

const label = {
  "console-log": Key.consoleLog("Keep what a machine that does not come up wrote to its console."),
  type: Key.choice("What a machine is.", ["container", "virtual-machine"]),
  cores: Key.integer("Processors (`limits.cpu`).", { default: 1, like: Is.whole(1) }),
  ram: Key.integer("Memory (`limits.memory`).", { default: 1024, unit: "MiB", like: Is.whole(1) }),
  profiles: Key.texts("Profiles, in their order. They give a machine its disk and its network.", {
    default: ["default"],
    like: Is.CLOUD_NAME,
  }),
  config: Key.metadata("Further keys of the instance, such as `security.nesting`.").map((keys, at) => {
    const own = Object.keys(keys).find((key) => OWN_KEYS.test(key));
    if (own !== undefined) at.error("config", `has ${own}, which the driver writes; leave it out`);
    return keys;
  }),
  devices: Key.mapping("Devices by name, over those of the profiles.").map(
    (devices) => (devices ?? {}) as Readonly<Record<string, Readonly<Record<string, string>>>>,
  ),
  "host-key-checking": Key.flag("False: ready as soon as it has an address.", Key.inherited("the pool's")),
  userdata: Key.userData("User data for cloud-init."),
};

/** What machines are made of that no builder uploaded. */
export type LxdImage = Values<typeof cloudImage>;

/** The keys of an lxd provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const lxdConfig = cloudConfig(
  "lxd",
  {
    ...{ provider, pool, label },
    images: {
      ...{ diskimage: { meta: Key.mapping("Properties of the image.").unread() }, cloudImage },
      ...{ listed: "Images that the server or a remote has.", oneNeeded: true },
      rules: [Key.atMostOne("image", "copy-of")],
    },
  },
  {
    provider({ at, own }) {
      for (const key of own.server.startsWith("/") ? [] : ["client-certificate", "client-key"])
        if (!at.has(key)) at.error(key, `is missing, and ${own.server} is reached by certificates only`);
      return { own };
    },
    images: {
      // Null for an uploaded image.
      none: { image: null as LxdImage | null },
      cloudImage: (one, name) => ({ image: { ...one, image: one.image ?? name } }),
    },
  },
);

/** A compiled provider of the lxd driver. */
export type LxdProviderConfig = ConfigOf<typeof lxdConfig>;
export type LxdProviderOwn = LxdProviderConfig["own"];
export type LxdOrder = OrderOf<typeof lxdConfig>;
export type LxdLabelOwn = LxdOrder["label"]["own"];
