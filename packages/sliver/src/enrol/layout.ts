import { packagesOf } from "../isolation/programs.ts";

/** Where everything of a sliver host lies. All of it is root's, outside of every home; names begin with `nodeyard`. */
export const LAYOUT = {
  /** Programs, one folder per bundle, and a link to the one that is in use. */
  programs: "/usr/lib/nodeyard-sliverd",
  current: "/usr/lib/nodeyard-sliverd/current",
  settings: "/etc/nodeyard-sliver",
  config: "/etc/nodeyard-sliver/sliverd.json",
  keysFile: "/etc/nodeyard-sliver/authorized_keys",
  record: "/etc/nodeyard-sliver/enrolled.json",
  sshd: "/etc/ssh/sshd_config.d/60-nodeyard-sliver.conf",
  unit: "/etc/systemd/system/nodeyard-sliverd.service",
  wants: "/etc/systemd/system/multi-user.target.wants/nodeyard-sliverd.service",
  state: "/var/lib/nodeyard-sliverd",
  log: "/var/log/nodeyard-sliverd.log",
  run: "/run/nodeyard-sliver",
  pid: "/run/nodeyard-sliverd.pid",
  /** The configuration that sshd last loaded, until the next boot. */
  told: "/run/nodeyard-sliverd.sshd",
  /** There while files of the daemon are newer than what it was started with; a boot starts it with what there is. */
  due: "/run/nodeyard-sliverd.due",
  /** A runtime of this machine's own, where the bundle brings none. */
  node: "/usr/lib/nodeyard-sliverd/current/node",
} as const;

/** The one Unix user of all control accounts. */
export const CONTROL_USER = "nodeyard-control";

/** Programs without which slivers cannot be made, and the Debian packages that hold them. */
export const PROGRAMS = packagesOf([
  "lxc-start",
  "btrfs",
  "mkfs.btrfs",
  "nft",
  "ip",
  "tc",
  "ssh-keygen",
  "sshd",
  "setpriv",
  "useradd",
]);

/** Wanted by `container` slivers whose image is made on the machine. */
export const IMAGE_PROGRAMS = packagesOf(["mmdebstrap"]);
