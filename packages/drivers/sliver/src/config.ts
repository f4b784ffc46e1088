import {
  ABSOLUTE,
  choice,
  commonOf,
  compileLabels,
  compilePools,
  driverConfig,
  type Entry,
  entries,
  flag,
  type Grammar,
  group,
  HOST,
  hostKeys,
  inherited,
  integer,
  LIMIT,
  launchKeys,
  loginKeys,
  PORT,
  type PoolConfig,
  type ProviderConfig,
  pattern,
  poolKeys,
  section,
  sized,
  text,
  texts,
  type Values,
  whole,
} from "@nodeyard/driver";
import { CONTROL_USER, NODE_ID, type SshTarget } from "@nodeyard/sliver-protocol";
import { readKeys, readLend, type SliverSettings, sliverKeys } from "./rspec.ts";

const SSH_PORT = 22;
/** What the transport hands to ssh, which must not take it for an option (`sshArguments`). */
const SSH_HOST: Grammar = { ...HOST, holds: (value) => HOST.holds(value) && /^[!-~]*$/.test(String(value)) };
/** ssh_config cannot quote a quote. */
const SSH_FILE = pattern("an absolute path without quotes", /^\/[^"\n\0]*$/, [
  ["/etc/nodeyard/key"],
  ["key", '/a"b'],
]);

/** Keys of a machine. It is reached in one of two ways: by its control socket, or by SSH with the control account's key. */
const machineTable = {
  name: text("The node id that the machine was enrolled by.", {
    needed: true,
    like: pattern("a node id of letters, digits and .:_-", NODE_ID, [["big-1"], ["big 1", ""]]),
  }),
  socket: text("Absolute path of the control socket, for this machine; exactly one of this and `host`.", {
    like: ABSOLUTE,
  }),
  host: text("Name or address of a machine that is reached by SSH.", { like: SSH_HOST }),
  port: integer("Its SSH server's port.", { default: SSH_PORT, like: PORT }),
  user: text("Its control account.", {
    shown: CONTROL_USER,
    like: pattern("a user's name", /^[a-z_][a-z0-9_-]{0,31}$/, [["ci_1"], ["root;x", "-l", ""]]),
  }),
  "identity-file": text(
    "Absolute path of the private key that the control account knows; needed with `host`.",
    { like: SSH_FILE },
  ).names("file"),
  address: text("What clients reach the machine by; each sliver is at a port of it that it publishes.", {
    like: HOST,
    shown: "`host`; with `socket`: none, and slivers are reached at their own addresses",
  }),
  "host-keys": hostKeys("The machine's SSH host keys; needed with `host`."),
};

const authorizedKeys = "Public keys that may log in, without options.";

/** Keys of a label: those of its slivers, and what the launcher does with their nodes. */
const labelTable = {
  name: text("A top-level label.", { needed: true }),
  own: group(sliverKeys),
  lend: choice(
    "Lending of unused caps. `none`: a sliver lends nothing. `idle`: a ready sliver that is not assigned lends to busy slivers on its machine whose label lends too.",
    ["none", "idle"],
  ),
  "authorized-keys": texts(authorizedKeys, inherited("the provider's")).map(
    (lines, at) => lines && readKeys(lines, at),
  ),
  connection: group({
    "python-path": loginKeys["python-path"],
    "shell-type": loginKeys["shell-type"],
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
    all: sized(1),
  }),
  "signing-keys": text("Absolute path of the keys that the machines believe (`nodeyard sliverd keys`).", {
    needed: true,
    like: ABSOLUTE,
  }).names("file"),
  epoch: integer("Raise it above another writer's to take its machines over.", {
    default: 1,
    like: whole(1),
  }),
  "authorized-keys": texts(authorizedKeys, { shown: "none" }).map(readKeys),
  ...launchKeys({
    launch: 1800,
    booted: "For a sliver to show its host key.",
    launched: "From the start of a launch to a running sliver; making an image counts.",
  }),
  pools: entries(
    section({
      ...poolKeys({
        "max-millicores": integer("CPU guarantees at once.", LIMIT).as("millicores"),
        "max-ram": integer("Memory guarantees at once.", { ...LIMIT, unit: "MiB" }).as("ram"),
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
      const { at, connection, hostKeyChecking, consoleLog } = label;
      const authorizedKeys = label.authorizedKeys ?? provider.authorizedKeys;
      const own = { ...label.own, authorizedKeys, lends: readLend(label.lend, label.own.rspec, at) };
      return { hostKeyChecking, consoleLog, connection, image: null, own };
    }),
    own: undefined,
  }));
  return { ...commonOf(provider), pools, own: { machines: machinesOf(provider), signingKeys, epoch } };
});

/** The machines of which the entry is right; a wrong one is reported and left out, so that one load reports all mistakes. */
function machinesOf({ at, machines: listed }: Entry<Values<typeof table>>): readonly MachineAt[] {
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
  // Slivers are reached where the machine is, unless the file says otherwise.
  return { name, at: { ssh }, address: address ?? host };
}
