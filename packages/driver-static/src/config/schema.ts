import { bool, closed, commonPoolKeys, int, listOf, str, strOrStrs } from "@nodeyard/driver";

const node = closed(
  {
    name: str("Host name or address."),
    labels: strOrStrs("What the host is offered as; a string is split at white space."),
    username: str({ description: "Login user.", default: "zuul" }),
    timeout: int({ description: "For one check that the host answers.", default: 5, unit: "s" }),
    "host-key-checking": bool({
      description: "False: the host is never contacted by the launcher.",
      default: true,
    }),
    "host-key": strOrStrs("Keys as `<type> <base64>`; all of them must be among those that the host shows."),
    "connection-port": int({ description: "Port a client connects to.", default: 22 }),
    "connection-type": str({
      description: "`ssh`, `network_cli`, `winrm` or any other word.",
      default: "ssh",
    }),
    "shell-type": str("Ansible's shell type."),
    "python-path": str({ description: "Ansible's interpreter.", default: "auto" }),
    "max-parallel-jobs": int({ description: "Slots: how many nodes the host is at once.", default: 1 }),
  },
  ["name", "labels"],
);

const pool = closed({ ...commonPoolKeys, nodes: listOf(node, "The hosts.") });

/** The strict verdict's schema (docs/contract/config.md, "Static keys"). */
export const schema = closed({ pools: listOf(pool, "Groups of hosts.") });
