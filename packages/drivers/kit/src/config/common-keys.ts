import type { Resources } from "../resources.ts";
import type { Grammar } from "./grammar.ts";
import * as Is from "./grammar.ts";
import { group, type Table } from "./section.ts";
import { FLOAT } from "./vocabulary.ts";
import {
  type Entry,
  inherited,
  integer,
  LIMIT,
  mapping,
  NO_LIMIT,
  numbers,
  OURS,
  seconds,
  text,
} from "./words.ts";

const SSH_PORT = 22;
const WINRM_PORT = 5986;

/** The largest record that ZooKeeper takes as it is installed, less what else a node's record holds. */
const MOST_ATTRIBUTES = 1_000_000;
const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");
const ATTRIBUTES: Grammar = {
  write: `at most ${MOST_ATTRIBUTES} bytes as JSON, since ZooKeeper takes no larger record`,
  holds: (value) => sizeOf(value) <= MOST_ATTRIBUTES,
  right: [{ rack: 1 }],
  wrong: [{ notes: "x".repeat(MOST_ATTRIBUTES) }],
  shown: (value) => `${sizeOf(value)} bytes long`,
};

const YIELDS = "a request waits for a preferred provider or pool for 60 s at most; in Nodepool without end.";

/** Keys of every provider (docs/contract/config.md, "Providers and drivers"). */
export const commonProvider = {
  name: text("Unique name of the provider.", { needed: "validator", default: "" }),
  driver: text(
    "Which driver it is for: a name, `npm:PACKAGE`, or a path that starts with `./`, `../` or `/`.",
    { default: "openstack" },
  ),
  "max-concurrency": integer("Launches at once; negative: no limit, 0: no request is looked at.", {
    default: -1,
  })
    .map((launches) => (launches < 0 ? Number.POSITIVE_INFINITY : launches))
    .differs("bounds launches under way; in Nodepool it does not."),
  priority: integer("Lower is preferred.", { default: 100 }).differs(YIELDS),
};

/** `max-servers` of a pool, with further limits. `needed`: the loader wants it. */
export const limits = <More extends Table>(more: More, { needed = false } = {}) =>
  group({
    "max-servers": integer(
      "Nodes at once; 0 or less: the pool declines everything.",
      needed ? { needed: "loader" } : NO_LIMIT,
    )
      .as("instances")
      .differs(
        "a request that waits for room stays `requested`, without a lock and without nodes; in Nodepool it is `pending` and keeps both.",
      ),
    ...more,
  });

/** Limits of the sizes of machines. */
export const sizeLimits = {
  "max-cores": integer("Cores at once.", LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...LIMIT, unit: "MiB" }).as("ram"),
};

const LIMITED = { instances: "max-servers", cores: "max-cores", ram: "max-ram" };

/** Limits of a pool of a provider that has the same keys: one that the pool sets takes precedence. */
export const limitsOver = (pool: Entry<{ readonly limits: Resources }>, provider: Resources): Resources =>
  Object.fromEntries(
    Object.entries(LIMITED).map(([name, key]) => [name, (pool.at.has(key) ? pool.limits : provider)[name]!]),
  );

/** Keys of every pool (docs/contract/config.md, "Providers and drivers"), but for what makes its labels. */
export const poolKeys = {
  name: text("Name of the pool, unique in its provider.", { needed: "loader" }),
  limits: limits({}),
  "node-attributes": mapping("Copied to the `attributes` of every node of the pool.", { all: ATTRIBUTES }),
  priority: integer("Lower is preferred.", inherited("the provider's")).differs(YIELDS),
};

/** Prices of machines, for clouds that do not publish them, or to override what the cloud says. */
export const priceKeys = {
  prices: group({
    prices: numbers(
      "What an hour of a machine costs, by its type as `explain` names it: `t3.medium`, or `t3.medium, spot`; by label where the driver has no types.",
      FLOAT,
      { default: {}, like: Is.FROM_0 },
    )
      .as("perHour")
      .accepted(OURS),
    "price-currency": text("Currency of `prices`, by its code of ISO 4217.", {
      default: "USD",
      like: Is.pattern("three capital letters", /^[A-Z]{3}$/, [["EUR"], ["euro", "€"]]),
    })
      .as("currency")
      .accepted(OURS),
  }),
};

/** Keys of a provider that launches machines; defaults in seconds. */
export const launchKeys = ({
  launch = 3600,
  boot = 60,
  launched = "From the start of a launch to a machine.",
  booted = "For a machine to answer once it is up.",
}) => ({
  ...priceKeys,
  "boot-timeout": seconds(booted, { default: boot, like: Is.ABOVE_0, instead: "no machine can keep" }).as(
    "bootTimeoutMs",
  ),
  "launch-timeout": seconds(launched, { default: launch, like: Is.ABOVE_0 }).as("launchTimeoutMs"),
  "launch-retries": integer("Attempts per node in all.", {
    default: 3,
    like: Is.whole(1),
    instead: "counts as 1",
  })
    .as("launchAttempts")
    .map((attempts) => Math.max(1, Math.floor(attempts)))
    .differs(
      "a cloud without room is no attempt: the request goes elsewhere or waits; in Nodepool it is one.",
    ),
});

/** Login data for Ansible, for images that do not provide it. */
export const loginKeys = {
  username: text("Login user.", { like: Is.CLOUD_NAME }),
  "python-path": text("Ansible's interpreter.", { default: "auto", like: Is.NOT_EMPTY }),
  "shell-type": text("Ansible's shell type.", { like: Is.SHELL_TYPE, instead: "Ansible lacks" }),
};

/** Keys of the images that a provider lists (docs/contract/config.md, "Images of a provider"). */
export const connectionKeys = {
  "connection-type": text(
    "`ssh` and `network_cli` show host keys; with any other type only the port is tried.",
    { default: "ssh", like: Is.CONNECTION_TYPE, instead: "Ansible lacks" },
  ).as("type"),
  "connection-port": integer("Port a client connects to.", {
    default: null,
    shown: `${SSH_PORT}; ${WINRM_PORT} for winrm`,
    like: Is.PORT,
  }).as("port"),
};

/** Fills in the default port of a connection type. */
export function withPort<C extends { readonly type: string; readonly port: number | null }>(
  connection: C,
): C & { readonly port: number } {
  return { ...connection, port: connection.port ?? (connection.type === "winrm" ? WINRM_PORT : SSH_PORT) };
}
