import {
  absolute,
  choice,
  commonOf,
  compileLabels,
  compilePools,
  driverConfig,
  type Entry,
  entries,
  flag,
  group,
  inherited,
  integer,
  launchKeys,
  messageOf,
  NO_LIMIT,
  type PoolConfig,
  type ProviderConfig,
  poolKeys,
  section,
  text,
  texts,
  type Values,
  wholeFromOne,
} from "@nodeyard/driver";
import { CONTROL_USER, NODE_ID, type SshTarget, sshArguments, sshKey } from "@nodeyard/sliver-protocol";
import { readKeys, readLend, type SliverSettings, sliverKeys } from "./rspec.ts";

const SSH_PORT = 22;

/** Keys of a machine. It is reached in one of two ways: by its control socket, or by SSH with the control account's key. */
const machineTable = {
  name: text("The node id that the machine was enrolled by.", { needed: true }).check((name) =>
    NODE_ID.test(name) ? undefined : `is ${name}, which is not a node id; write letters, digits and .:_-`,
  ),
  socket: text(
    "Absolute path of the control socket, for this machine; exactly one of this and `host`.",
  ).check(absolute),
  host: text("Name or address of a machine that is reached by SSH."),
  port: integer("Its SSH server's port.", { default: SSH_PORT }),
  user: text("Its control account.", { shown: CONTROL_USER }),
  "identity-file": text(
    "Absolute path of the private key that the control account knows; needed with `host`.",
  )
    .check(absolute)
    .names("file"),
  address: text("What clients reach the machine by; each sliver is at a port of it that it publishes.", {
    shown: "`host`; with `socket`: none, and slivers are reached at their own addresses",
  }),
  "host-keys": texts("The machine's SSH host keys as `type base64`; needed with `host`.", { default: [] }),
};

const authorizedKeys = "Public keys that may log in, without options.";

/** Keys of a label: those of its slivers, and what the launcher does with their nodes. */
const labelTable = {
  name: text("A top-level label.", { needed: true }),
  ...sliverKeys,
  lend: choice(
    "Lending of unused caps. `none`: a sliver lends nothing. `idle`: a ready sliver that is not assigned lends to busy slivers on its machine whose label lends too.",
    ["none", "idle"],
  ),
  "authorized-keys": texts(authorizedKeys, inherited("the provider's")).map(
    (lines, at) => lines && readKeys(lines, at),
  ),
  connection: group({
    "python-path": text("Ansible's interpreter.", { default: "auto" }),
    "shell-type": text("Ansible's shell type."),
    // The machine determines the user name when it places the sliver.
  }).map((ansible) => ({ ...ansible, username: null, type: "ssh", port: SSH_PORT })),
  "console-log": flag("Keep what a sliver that does not come up wrote to its console, in log and journal.", {
    default: false,
  }),
  "host-key-checking": flag("False: ready as soon as its manager says so.", { default: true }),
};

const table = {
  machines: entries(section(machineTable), "Machines whose sliver managers are this provider's.", {
    needed: "validator",
  }),
  "signing-keys": text("Absolute path of the keys that the machines believe (`nodeyard sliverd keys`).", {
    needed: true,
  })
    .check(absolute)
    .names("file"),
  epoch: integer("Raise it above another writer's to take its machines over.", { default: 1 }).check(
    wholeFromOne,
  ),
  "authorized-keys": texts(authorizedKeys, { shown: "none" }).map(readKeys),
  ...launchKeys({
    launch: 1800,
    booted: "For a sliver to show its host key.",
    launched: "From the start of a launch to a running sliver; making an image counts.",
  }),
  pools: entries(
    section({
      ...poolKeys({
        "max-millicores": integer("CPU guarantees at once.", NO_LIMIT).as("millicores"),
        "max-ram": integer("Memory guarantees at once.", { ...NO_LIMIT, unit: "MiB" }).as("ram"),
      }),
      labels: entries(section(labelTable), "What the pool offers."),
    }),
    "What the provider offers, in pools.",
  ),
};

/** A machine with a sliver manager, and how to reach its API. */
export interface MachineAt {
  /** The node id with which it was enrolled. Documents for the machine contain it. */
  readonly name: string;
  readonly at: { readonly socket: string } | { readonly ssh: SshTarget };
  /** Address by which clients reach the machine, with a port for each sliver; null: slivers are reached at their own addresses. */
  readonly address: string | null;
}

/** The driver's part of a provider. */
export interface SliverProviderOwn extends Pick<Values<typeof table>, "signingKeys" | "epoch"> {
  readonly machines: readonly MachineAt[];
}
/** A compiled pool of the sliver driver. */
export type SliverPoolConfig = PoolConfig<undefined, SliverSettings>;
/** A compiled provider of the sliver driver. */
export type SliverProviderConfig = ProviderConfig<SliverProviderOwn, undefined, SliverSettings>;

/** The keys of a sliver provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const sliverConfig = driverConfig("sliver", table, (provider, context): SliverProviderConfig => {
  const { signingKeys, epoch } = provider;
  const pools = compilePools(provider, (pool) => ({
    labels: compileLabels(pool, context, (label) => {
      const { at, connection, rspec, image, initscript, nesting, devices, caches } = label;
      const lends = readLend(label.lend, rspec, at);
      const authorizedKeys = label.authorizedKeys ?? provider.authorizedKeys;
      const own = { rspec, image, initscript, nesting, devices, caches, authorizedKeys, lends };
      const { hostKeyChecking, consoleLog } = label;
      return { hostKeyChecking, consoleLog, connection, image: null, own };
    }),
    own: undefined,
  }));
  return { ...commonOf(provider), pools, own: { machines: machinesOf(provider), signingKeys, epoch } };
});

/** The machines of which the entry is right; a wrong one is reported and left out, so that one load reports all mistakes. */
function machinesOf({ at, machines: listed }: Entry<Values<typeof table>>): readonly MachineAt[] {
  if (listed.length === 0) at.error("machines", "names no machine; add one");
  const machines = listed.flatMap((machine) => machineAt(machine) ?? []);
  const names = machines.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) at.error("machines", `names ${twice} twice; each machine has a name of its own`);
  return machines;
}

/** How one machine is reached; undefined after an error was reported. */
function machineAt({ at, ...machine }: Entry<Values<typeof machineTable>>): MachineAt | undefined {
  const { name, socket, host, port, user, identityFile, address, hostKeys } = machine;
  if (at.has("socket") === at.has("host")) {
    at.error(undefined, "needs exactly one of socket and host");
    return undefined;
  }
  if (socket !== null) return { name, at: { socket }, address };
  if (identityFile === null)
    at.error("identity-file", "is missing; name the private key of the control account");
  if (!at.has("host-keys"))
    at.error("host-keys", "is missing; ssh-keyscan prints them; check them with the machine's owner");
  if (host === null || identityFile === null || !at.has("host-keys")) return undefined;
  const ssh = { host, port, ...(user === null ? {} : { user }), identityFile, hostKeys };
  try {
    for (const key of hostKeys) sshKey(key);
    // Checked now, so that a target that ssh would misinterpret is reported with the configuration and not at the first call.
    sshArguments(ssh, "");
    // Slivers are reached where the machine is, unless the file says otherwise.
    return { name, at: { ssh }, address: address ?? host };
  } catch (error) {
    at.error(undefined, messageOf(error));
    return undefined;
  }
}
