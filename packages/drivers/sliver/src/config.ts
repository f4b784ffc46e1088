import {
  type ConfigOf,
  cloudConfig,
  type Entry,
  type Grammar,
  Is,
  Key,
  type Reader,
  type Values,
} from "@nodeyard/driver";
import { CONTROL_USER, NODE_ID, type SshTarget } from "@nodeyard/sliver-protocol";
import { readKeys, readLend, sliverKeys } from "./rspec.ts";

const SSH_PORT = 22;
/** What the transport hands to ssh, which must not take it for an option (`sshArguments`). */
const SSH_HOST: Grammar = {
  ...Is.HOST,
  holds: (value) => Is.HOST.holds(value) && /^[!-~]*$/.test(String(value)),
};
/** ssh_config cannot quote a quote. */
const SSH_FILE = Is.pattern("an absolute path without quotes", /^\/[^"\n\0]*$/, [
  ["/etc/nodeyard/key"],
  ["key", '/a"b'],
]);

/** Keys of a machine. It is reached in one of two ways: by its control socket, or by SSH with the control account's key. */
const machineTable = {
  name: Key.text("The node id that the machine was enrolled by.", {
    needed: true,
    like: Is.pattern("a node id of letters, digits and .:_-", NODE_ID, [["big-1"], ["big 1", ""]]),
  }),
  socket: Key.text("Absolute path of the control socket, for this machine; exactly one of this and `host`.", {
    like: Is.ABSOLUTE,
  }),
  host: Key.text("Name or address of a machine that is reached by SSH.", { like: SSH_HOST }),
  port: Key.integer("Its SSH server's port.", { default: SSH_PORT, like: Is.PORT }),
  user: Key.text("Its control account.", {
    shown: CONTROL_USER,
    like: Is.pattern("a user's name", /^[a-z_][a-z0-9_-]{0,31}$/, [["ci_1"], ["root;x", "-l", ""]]),
  }),
  "identity-file": Key.text(
    "Absolute path of the private key that the control account knows; needed with `host`.",
    {
      like: SSH_FILE,
    },
  ).names("file"),
  address: Key.text("What clients reach the machine by; each sliver is at a port of it that it publishes.", {
    like: Is.HOST,
    shown: "`host`; with `socket`: none, and slivers are reached at their own addresses",
  }),
  "host-keys": Key.hostKeys("The machine's SSH host keys; needed with `host`."),
};

const authorizedKeys = "Public keys that may log in, without options.";

/** Keys of a label: those of its slivers, and what the launcher does with their nodes. */
const label = {
  ...sliverKeys,
  lend: Key.choice(
    "Lending of unused caps. `none`: a sliver lends nothing. `idle`: a ready sliver that is not assigned lends to busy slivers on its machine whose label lends too.",
    ["none", "idle"],
  ),
  "authorized-keys": Key.texts(authorizedKeys, Key.inherited("the provider's")).map(
    (lines, at) => lines && readKeys(lines, at),
  ),
  connection: Key.group({
    "python-path": Key.loginKeys["python-path"],
    "shell-type": Key.loginKeys["shell-type"],
    // The machine determines the user name when it places the sliver.
  }).map((ansible) => ({ ...ansible, username: null, type: "ssh", port: SSH_PORT })),
  "console-log": Key.flag(
    "Keep what a sliver that does not come up wrote to its console, in log and journal.",
    {
      default: false,
    },
  ),
  "host-key-checking": Key.flag("False: ready as soon as its manager says so.", { default: true }),
};

const pool = {
  limits: Key.limits({
    "max-millicores": Key.integer("CPU guarantees at once.", Key.LIMIT).as("millicores"),
    "max-ram": Key.integer("Memory guarantees at once.", { ...Key.LIMIT, unit: "MiB" }).as("ram"),
  }),
};

const provider = {
  machines: Key.entries(Key.section(machineTable), "Machines whose sliver managers are this provider's.", {
    needed: "validator",
    all: Is.sized(1),
  }),
  "signing-keys": Key.text("Absolute path of the keys that the machines believe (`nodeyard sliverd keys`).", {
    needed: true,
    like: Is.ABSOLUTE,
  }).names("file"),
  epoch: Key.integer("Raise it above another writer's to take its machines over.", {
    default: 1,
    like: Is.whole(1),
  }),
  "authorized-keys": Key.texts(authorizedKeys, { shown: "none" }).map(readKeys),
  ...Key.launchKeys({
    launch: 1800,
    booted: "For a sliver to show its host key.",
    launched: "From the start of a launch to a running sliver; making an image counts.",
  }),
};

/** A machine with a sliver manager, and how to reach its API. */
export interface MachineAt {
  /** The node id with which it was enrolled. Documents for the machine contain it. */
  readonly name: string;
  readonly at: { readonly socket: string } | { readonly ssh: SshTarget };
  /** Address by which clients reach the machine, with a port for each sliver; null: slivers are reached at their own addresses. */
  readonly address: string | null;
}

/** The keys of a sliver provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const sliverConfig = cloudConfig(
  "sliver",
  { provider, pool, label },
  {
    provider: ({ at, own }) => ({ own: { ...own, machines: machinesOf(own.machines, at) } }),
    label({ at, own: { lend, ...own } }, _pool, { own: provider }) {
      const authorizedKeys = own.authorizedKeys ?? provider.authorizedKeys;
      return { own: { ...own, authorizedKeys, lends: readLend(lend, own.rspec, at) } };
    },
  },
);

/** A compiled provider of the sliver driver. */
export type SliverProviderConfig = ConfigOf<typeof sliverConfig>;
/** A compiled pool of the sliver driver. */
export type SliverPoolConfig = SliverProviderConfig["pools"][number];

type MachineKeys = Entry<Values<typeof machineTable>>;

/** The machines of which the entry is right; a wrong one is reported and left out, so that one load reports all mistakes. */
function machinesOf(listed: readonly MachineKeys[], at: Reader): readonly MachineAt[] {
  const machines = listed.flatMap((machine) => machineAt(machine) ?? []);
  const names = machines.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) at.error("machines", `names ${twice} twice; each machine has a name of its own`);
  return machines;
}

/** How one machine is reached; undefined after an error was reported. */
function machineAt({ at, ...machine }: MachineKeys): MachineAt | undefined {
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
