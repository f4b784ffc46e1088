import { FLOAT, INTEGER, Is, Key, LIST, type Reader, type Values } from "@nodeyard/driver";
import { diskimageTable, imageTable } from "./diskimage-table.ts";
import { sparesTable, TIMEZONE } from "./spares-table.ts";
import { webappTable } from "./webapp-table.ts";

/** A maximal age; absent, 0 and less are no limit. */
const age = (description: string) =>
  Key.seconds(description, { default: 0 }).map((ms) => (ms > 0 ? ms : Number.POSITIVE_INFINITY));

/** A key without a value, or with an empty one, is as absent. */
const folder = (description: string) => Key.text(description).map((path) => path || null);

/** As in Nodepool, relative to the folder in which the program was started. */
const FILE = { like: Is.NOT_EMPTY };

/** The secure port of ZooKeeper is the default, as in Nodepool. */
const server = Key.section({
  host: Key.text("Host name or address; IPv6 without brackets.", {
    needed: "loader",
    like: Is.HOST_IN_BRACKETS,
  }).map(shortHost),
  port: Key.integer("Port.", { default: 2281, like: Is.PORT }),
  chroot: Key.text("Path below which the tree is; the same on every server that has one.", {
    default: "",
    like: Is.orEmpty(Is.pattern("a path that starts with a slash", /^\/[^ ]*$/, [["/ci"], ["ci", "/c i"]])),
  }).map((path) => path.replace(/\/+$/, "")),
});

/** Keys of the main file that the secure file may have in its place (docs/contract/config.md, "Secure file"). */
const zookeeperTable = {
  "zookeeper-servers": Key.entries(server, "The ensemble.", { nullable: true }),
  "zookeeper-tls": Key.inner(
    Key.section({
      cert: Key.text("PEM file of the client's certificate.", FILE).names("file"),
      key: Key.text("PEM file of its key.", FILE).names("file"),
      ca: Key.text("PEM file of the authority that signed the servers'.", FILE).names("file"),
    }),
    "All three, or the connection is plain TCP.",
  ),
};

/** A log level that overrides the command line. */
const level = (description: string) =>
  Key.choice(description, ["default", "debug", "info", "warn", "error"]).map((word) =>
    word === "default" ? undefined : word,
  );

/** The level of each area of the log; a mapping, so that a name that is none is found by the validator. */
const logLevelTable = {
  all: level("Of every area that is not named here; default: as the command line says."),
  process: level("Start, stop, configuration."),
  launcher: level("Requests, nodes, providers."),
  builder: level("Builds and uploads."),
  driver: level("At debug: each call of a driver, with its time and result."),
  tree: level("At debug: each write to the tree, with its time and result."),
  api: level("The HTTP interface."),
};

const AS_0 = { like: Is.FROM_0, instead: "counts as 0" };

/** Labels are known to pools by name only; which pools offer one is said there. */
const labelTable = {
  name: Key.text("What clients ask for.", { needed: true, like: Is.NOT_EMPTY }),
  "min-ready": Key.integer("Ready nodes to keep in stock.", { default: 0, ...AS_0 }).map((nodes) =>
    Math.max(0, Math.floor(nodes)),
  ),
  "max-ready-age": age("Ready nodes at least this old are replaced; 0: never.").as("maxReadyAgeMs"),
  spares: Key.optional(
    "Further nodes to keep ready, by schedule, use or wanted wait: what asks for the most counts. Unknown to the old launcher.",
    sparesTable,
  ),
};

/** Somebody's part of what there is; one that is not listed weighs 1. */
const share = (name: string) =>
  Key.section({
    name: Key.text(name, { needed: "loader", like: Is.NOT_EMPTY }),
    weight: Key.integer("How many times as much it may have as one of weight 1.", {
      default: 1,
      like: Is.whole(1),
      instead: "counts as 1",
    }).map((weight) => Math.max(1, weight)),
  });

/** Limits of one tenant's nodes; any other key limits the resource of its name. */
export const tenantLimits = {
  "max-servers": Key.integer("Nodes at once.", Key.NO_LIMIT).as("instances"),
  ...Key.cloudLimits,
};

/** What the nodes of one tenant may cost in a month: `Budget` of the scheduler. */
const budgetTable = {
  amount: Key.number("When so much is spent, requests of the tenant wait for the next month.", {
    needed: "loader",
    like: Is.FROM_0,
  }),
  currency: Key.text(
    "Code of the currency that its nodes have prices in; those in others cost nothing of it.",
    {
      needed: "loader",
      like: Is.pattern("three capital letters, as in EUR", /^[A-Z]{3}$/, [["EUR"], ["eur", "€"]]),
    },
  ),
  timezone: Key.text("Where a month begins at midnight of its first day.", {
    default: "UTC",
    like: TIMEZONE,
  }),
};

/**
 * Each key once: schema, defaults, compiled type, JSON Schema and reference page are made of it
 * (docs/design/configuration-tables.md). The texts are those of the reference.
 */
const topTable = {
  ...zookeeperTable,
  "zookeeper-timeout": Key.field(
    "Session timeout.",
    { default: 10, unit: "s", like: Is.ABOVE_0 },
    FLOAT,
    readTimeout,
  )
    .as("zookeeperTimeoutMs")
    .accepted(
      "is accepted; Nodepool's validator wants a decimal point, as in 10.0",
      (value) => typeof value === "number",
    ),
  labels: Key.entries(Key.section(labelTable), "Labels that clients may ask for.", { nullable: true }),
  diskimages: Key.entries(
    Key.section({ ...diskimageTable, ...Key.unread(imageTable) }),
    "Images that the builder makes.",
    { nullable: true },
  ).differs(
    "an image that fails is built again after a minute, then after twice as long each time, up to half an hour; in Nodepool every ten seconds.",
  ),
  providers: Key.field("Where nodes come from; the keys depend on `driver`.", {}, LIST, readList),
  webapp: Key.inner(
    Key.section(webappTable),
    "Where `nodeyard launcher` serves lists, health and metrics by HTTP; `nodeyard up` does so by TCP only where this stands.",
  )
    .map((webapp, at, key) => ({ ...webapp, isNamed: at.has(key) }))
    .differs(
      "`user_data`, `driver_data` and `comment` are for programs of this machine and for tokens; in Nodepool for everybody.",
    ),
  builder: Key.group({
    "elements-dir": folder("Where build elements are looked for.").names("folder", (dirs) => dirs.split(":")),
    "images-dir": folder("Where built images are kept; the builder needs it.")
      .names("work-folder")
      .differs(
        "one builder per folder, which deletes no file that it cannot prove to be its installation's; Nodepool deletes by name.",
      ),
    "build-log-dir": Key.text("Where logs of builds go.", { default: "/var/log/nodepool/builds" })
      .as("logDir")
      .map((path) => path || "/var/log/nodepool/builds"),
    "build-log-retention": Key.integer("Old logs kept per image.", { default: 7 })
      .as("logRetention")
      .map((logs) => (logs < 0 ? Number.POSITIVE_INFINITY : Math.max(1, logs)))
      .differs("each image has its own logs; in Nodepool `fedora` deletes those of `fedora-arm`, too."),
  }),
  "max-hold-age": age("Held nodes are deleted at this age; 0 or less: never.").as("maxHoldAgeMs"),
  "max-failed-launches-per-hour": Key.integer(
    "Of one label, in all its places together; beyond it nothing is launched of it for a while. Of a label of which nothing has worked yet, no more are begun at once. Unknown to the old launcher.",
    { default: 60, like: Is.whole(1), instead: "counts as 1" },
  )
    .as("failedLaunchesPerHour")
    .map((launches) => Math.max(1, launches)),
  journal: Key.group({
    "journal-max-age": Key.seconds(
      "What the launcher notes for `explain` is forgotten at this age; at least 60. Unknown to the old launcher.",
      { default: 604_800, like: Is.whole(60), instead: "counts as 60" },
    )
      .as("maxAgeMs")
      .map((ms) => Math.max(60_000, ms)),
    "journal-max-size": Key.integer(
      "Size of the journal in the state folder, at least 5. Unknown to the old launcher.",
      {
        default: 500,
        unit: "MB",
        like: Is.whole(5),
        instead: "counts as 5",
      },
    )
      .as("maxBytes")
      .map((megabytes) => Math.max(5, megabytes) * 1_000_000),
  }),
  "log-level": Key.inner(
    Key.section(logLevelTable),
    "How much is logged, by area; a reload puts it into force at once. Unknown to the old launcher.",
  ).as("logLevels"),
  shares: Key.optional(
    "With this key, even an empty one, waiting requests of the same priority and relative priority are served in the order of what their tenants, and within a tenant its clients, have: nodes divided by weight. Without it the order is that of the old launcher, which does not know it.",
    {
      tenants: Key.entries(share("The tenant."), "Weights of tenants."),
      clients: Key.entries(
        share("The owner of a lease, or the requestor of a request without one."),
        "Weights of clients, which count within their tenant.",
      ),
    },
  ),
  "tenant-resource-limits": Key.entries(
    Key.openSection(
      {
        "tenant-name": Key.text("The tenant.", { needed: "loader", like: Is.NOT_EMPTY }),
        budget: Key.optional(
          "What its nodes may cost in a calendar month, by the prices that are known. Unknown to the old launcher.",
          budgetTable,
        ),
        ...Key.unread(tenantLimits),
      },
      INTEGER,
    ),
    "What the nodes of one tenant may use together.",
    { nullable: true },
  ).differs("a request that is larger than the limit is declined; in Nodepool it waits without end."),
};

/** The file but for the insides of providers (docs/contract/config.md, "Validator and loader"). */
export const top = Key.section(topTable);
/** The file as its table reads it; durations are milliseconds. */
export type Top = Values<typeof topTable>;

/** A top-level label. */
export type LabelSettings = Values<typeof labelTable>;

/** The file of `-s`, which holds what `nodepool.yaml` should not (docs/contract/config.md, "Secure file"). */
export const secure = Key.section({
  ...zookeeperTable,
  diskimages: Key.entries(
    Key.section({ name: diskimageTable.name, "env-vars": imageTable["env-vars"] }),
    "For the diskimage called `name`, its `env-vars` are added to those of `nodepool.yaml` and win over them. Images that have it as their `parent` do not get them.",
    { nullable: true },
  ),
});
/** The secure file as its table reads it. */
export type Secure = NonNullable<ReturnType<typeof secure.read>>;

/** Milliseconds; a key without a value, and no end, are errors. */
function readTimeout(at: Reader, key: string): number {
  if (at.raw[key] === null) at.error(key, "has no value; write seconds, or remove the key");
  const ms = at.number(key, 10) * 1000;
  if (ms === Number.POSITIVE_INFINITY) at.error(key, "must be a number of seconds");
  return ms;
}

/** Of anything: each provider is judged by its driver's table. */
function readList(at: Reader, key: string): readonly unknown[] {
  const value = at.raw[key] ?? [];
  if (Array.isArray(value)) return value;
  at.error(key, "must be a list");
  return [];
}

/** IPv6 literals in their short form, without brackets. */
function shortHost(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  if (!bare.includes(":")) return host;
  try {
    return new URL(`http://[${bare}]/`).hostname.slice(1, -1);
  } catch {
    return bare;
  }
}
