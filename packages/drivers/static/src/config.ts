import {
  type ConfigOf,
  cloudConfig,
  type Entry,
  Is,
  Key,
  type LabelConfig,
  type Reader,
  type Values,
} from "@nodeyard/driver";

/** Keys of an entry of `nodes`. */
const hostTable = {
  name: Key.text("Host name or address.", { needed: true, like: Is.HOST }),
  labels: Key.textOrTexts("What the host is offered as; a string is split at white space.", {
    needed: true,
    like: Is.NOT_EMPTY,
    all: Is.sized(1),
    instead: "no request can name",
  })
    .map(splitLabels)
    .differs("a string is split at white space, for the nodes, too; Nodepool registers it as one label."),
  connection: Key.group({
    username: Key.text("Login user.", { default: "zuul", like: Is.CLOUD_NAME }),
    "connection-port": Key.integer("Port a client connects to.", {
      default: null,
      shown: 22,
      like: Is.PORT,
    }),
    "ssh-port": Key.integer("Older name of `connection-port`.", { deprecated: true, like: Is.PORT }).accepted(
      "is accepted; Nodepool's validator does not know it",
    ),
    "connection-type": Key.text("`ssh`, `network_cli`, `winrm` or another word of Ansible.", {
      default: "ssh",
      like: Is.CONNECTION_TYPE,
      instead: "Ansible lacks",
    }).as("type"),
    "shell-type": Key.loginKeys["shell-type"],
    "python-path": Key.loginKeys["python-path"],
  }).map(({ connectionPort, sshPort, ...login }) => ({ ...login, port: connectionPort ?? sshPort ?? 22 })),
  timeout: Key.seconds("For one check that the host answers.", {
    default: 5,
    like: Is.ABOVE_0,
    instead: "no host can keep",
  }).as("timeoutMs"),
  "host-key-checking": Key.flag("False: the host is never contacted by the launcher.", { default: true }),
  "host-key": Key.hostKeyOrKeys("Keys that must all be among those that the host shows.").as("hostKeys"),
  "max-parallel-jobs": Key.integer("Slots: how many nodes the host is at once.", {
    default: 1,
    like: Is.whole(1),
    instead: "keeps the host from being offered",
  })
    .as("slots")
    .map((jobs) => Math.max(0, Math.floor(jobs))),
};

/** A host of a pool. The combination of name, username and connection.port is unique in the file. */
export type StaticHost = Values<typeof hostTable>;

const pool = {
  nodes: Key.entries(Key.section(hostTable), "The hosts.").differs(
    "a free host is kept for the first request in the queue that can use it, and is offered 60 s after its user was lost; in Nodepool the first request that asks gets it, at once.",
  ),
};

/** The keys of docs/contract/config.md, "Static keys". A pool has no labels of its own: those of its hosts are its labels. */
export const staticConfig = cloudConfig(
  "static",
  { provider: {}, pool },
  {
    provider({ name, pools, own }, { hosts = new Map() }) {
      const all = pools.flatMap(({ nodes }) => nodes);
      refuseTwice(all, name, hosts);
      return { own };
    },
    pool({ nodes }, _provider, context) {
      for (const { at, labels } of nodes)
        for (const label of labels.filter((name) => !context.labels.has(name)))
          at.error("labels", `names label ${label}, which is not in the top-level labels; add it there`);
      // In the order of the file.
      const hosts: readonly StaticHost[] = nodes.map(({ at: _, ...host }) => host);
      return { labels: labelsOf(hosts), own: { hosts } };
    },
  },
);

/** A compiled provider of the static driver. */
export type StaticProviderConfig = ConfigOf<typeof staticConfig>;
/** A compiled pool of the static driver. */
export type StaticPoolConfig = StaticProviderConfig["pools"][number];

/** Reports hosts that the file lists already, in any of its pools: two users would get one host. `seen`: where each is listed. */
function refuseTwice(hosts: readonly Entry<StaticHost>[], provider: string, seen: Map<string, string>): void {
  for (const { at, name, connection } of hosts) {
    const { username, port } = connection;
    // Two users of one host, or two ports, are two hosts for their clients.
    const identity = JSON.stringify([name.toLowerCase(), username, port]);
    const first = seen.get(identity);
    if (first === undefined) seen.set(identity, `${provider}, ${at.path.join(".")}`);
    else
      at.error(
        "name",
        `repeats ${username}@${name} port ${port} of ${first}; use max-parallel-jobs for several slots`,
      );
  }
}

/** The labels of all hosts of the pool. A label has the settings of the first host that has it. */
function labelsOf(hosts: readonly StaticHost[]): ReadonlyMap<string, LabelConfig> {
  const labels = new Map<string, LabelConfig>();
  for (const { labels: names, connection, hostKeyChecking } of hosts) {
    for (const name of names) {
      if (!labels.has(name))
        labels.set(name, { name, connection, hostKeyChecking, image: null, own: undefined });
    }
  }
  return labels;
}

/** Splits labels in the same way for the pool and for its nodes. */
function splitLabels(written: readonly string[], at: Reader): readonly string[] {
  // `textOrTexts` makes a list of both forms; only the file tells them apart.
  const isOneText = typeof at.raw.labels === "string";
  const labels = isOneText
    ? written.flatMap((text) => text.split(/\s+/).filter((label) => label !== ""))
    : written;
  if (isOneText && labels.length > 1)
    at.warn("labels", `is split into ${labels.join(" and ")}; write a list instead`);
  return [...new Set(labels)];
}
