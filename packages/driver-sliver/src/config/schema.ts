import { bool, closed, commonPoolKeys, int, listOf, str } from "@nodeyard/driver";
import { CONTROL_USER } from "@nodeyard/sliver-protocol";
import { AMOUNT_KEYS } from "./amounts.ts";

const machine = closed(
  {
    name: str("The node id that the machine was enrolled by."),
    socket: str("Absolute path of the control socket, for this machine; exactly one of this and `host`."),
    host: str("Name or address of a machine that is reached by SSH."),
    port: int({ description: "Its SSH server's port.", default: 22 }),
    user: str({ description: "Its control account.", default: CONTROL_USER }),
    "identity-file": str(
      "Absolute path of the private key that the control account knows; needed with `host`.",
    ),
    address: str({
      description: "What clients reach the machine by; each sliver is at a port of it that it publishes.",
      default: "`host`; with `socket`: none, and slivers are reached at their own addresses",
    }),
    "host-keys": listOf(str(), "The machine's SSH host keys as `type base64`; needed with `host`."),
  },
  ["name"],
);

export const amountKeys = Object.fromEntries(
  AMOUNT_KEYS.map(({ key, description, unit, missing, shown }) => [
    key,
    int({
      description,
      ...(unit === undefined ? {} : { unit }),
      default: missing ?? shown ?? "the manager's",
    }),
  ]),
);

const authorizedKeys = (by: string) =>
  listOf(str(), { description: "Public keys that may log in, without options.", default: by });

const label = closed(
  {
    name: str("A top-level label."),
    ...amountKeys,
    lend: str({
      description:
        "Who may use what a sliver leaves of its caps: `none`, nobody; `idle`, busy ones on its machine whose label lends too, as long as it is ready and nobody's.",
      default: "none",
    }),
    image: str({
      description: "Image of its root, by a name of the machine's or a digest; for the back end `container`.",
      default: "the machine's",
    }),
    initscript: str("Shell script that runs in each sliver when it starts, as its user."),
    "authorized-keys": authorizedKeys("the provider's"),
    "python-path": str({ description: "Ansible's interpreter.", default: "auto" }),
    "shell-type": str("Ansible's shell type."),
    "host-key-checking": bool({ description: "False: ready as soon as its manager says so.", default: true }),
  },
  ["name"],
);

const pool = closed({
  ...commonPoolKeys,
  "max-millicores": int({ description: "CPU guarantees at once.", default: "no limit" }),
  "max-ram": int({ description: "Memory guarantees at once.", default: "no limit", unit: "MiB" }),
  labels: listOf(label, "What the pool offers."),
});

export const schema = closed(
  {
    machines: listOf(machine, "Machines whose sliver managers are this provider's."),
    "signing-keys": str("Absolute path of the keys that the machines believe (`nodeyard sliverd keys`)."),
    epoch: int({
      description: "Raise it above another writer's to take its machines over.",
      default: 1,
    }),
    "authorized-keys": authorizedKeys("none"),
    "boot-timeout": int({ description: "For a sliver to show its host key.", default: 60, unit: "s" }),
    "launch-timeout": int({
      description: "From the start of a launch to a running sliver; making an image counts.",
      default: 1800,
      unit: "s",
    }),
    "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
    pools: listOf(pool, "What the provider offers, in pools."),
  },
  ["machines", "signing-keys"],
);
