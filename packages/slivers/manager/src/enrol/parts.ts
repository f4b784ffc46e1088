import { defined } from "@nodeyard/runtime";
import { CONTROL_USER, type KeySet, NODE_ID } from "@nodeyard/sliver-protocol";
import { EnrolError } from "../errors.ts";
import { packagesOf } from "../isolation/edge/run.ts";
import type { EnrolSettings } from "./settings.ts";

/** A part that the machine must have, with the facts by which it is checked. */
export type Part =
  | { readonly kind: "packages"; readonly names: readonly string[] }
  /** Programs are copied from the folder in which they were unpacked. */
  | { readonly kind: "programs"; readonly path: string; readonly from: string }
  | { readonly kind: "user"; readonly name: string }
  | { readonly kind: "folder"; readonly path: string; readonly mode: number }
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly text: string }
  | { readonly kind: "link"; readonly path: string; readonly to: string };

/** Paths and names of a sliver host. All files belong to root and are outside of home folders; names begin with `nodeyard`. */
export const LAYOUT = {
  /** Programs: a folder for each bundle, and a link to the one in use. */
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
  /** Copy of the configuration that sshd last loaded, until the next boot. */
  sshdLoaded: "/run/nodeyard-sliverd.sshd",
  /** Exists while the daemon's files are newer than its start. It is in /run, because a boot starts the daemon with the new files. */
  due: "/run/nodeyard-sliverd.due",
} as const;

/** Programs that slivers need, with the Debian packages that contain them. */
export const PROGRAMS = packagesOf([
  "lxc-start",
  "lxcfs",
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

/** Programs that images of `container` slivers need if they are made on the machine. */
export const IMAGE_PROGRAMS = packagesOf(["mmdebstrap"]);

/**
 * The daemon's configuration file. A newer key set to which the machine was rotated is kept. `node` is absent when many machines are made
 * of one image; each then makes an id of its own. Facts about the machine are left to the daemon.
 */
export function sliverdJson(
  settings: EnrolSettings,
  node: string | undefined,
  keySet: KeySet,
  controlUid: number,
): string {
  if (node !== undefined && !NODE_ID.test(node))
    throw new EnrolError(`${JSON.stringify(node)} is not a node id; give one with --node`);
  const value = {
    ...defined({ node }),
    backEnd: settings.backEnd,
    stateFolder: LAYOUT.state,
    runFolder: LAYOUT.run,
    keySet,
    control: {
      uid: controlUid,
      keys: settings.controlKeys,
      keysFile: LAYOUT.keysFile,
      forwarder: `${LAYOUT.current}/sliver-forward`,
    },
    ...settings.sliverd,
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Configuration of sshd for the control accounts' user only; other users are not affected. */
export function sshdConfig(): string {
  return `# Nodeyard: control accounts of the sliver manager. Each key has a forced command; there is no shell behind it.
Match User ${CONTROL_USER}
    AuthorizedKeysFile ${LAYOUT.keysFile}
    AuthorizedKeysCommand none
    AuthenticationMethods publickey
    PubkeyAuthentication yes
    DisableForwarding yes
    PermitTTY no
    PermitUserRC no
    X11Forwarding no
    Banner none
Match all
`;
}

/** Capabilities that neither the daemon nor its programs use. */
const UNUSED = [
  ...["AUDIT_CONTROL", "AUDIT_READ", "BLOCK_SUSPEND", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN"],
  ...["MAC_OVERRIDE", "SYSLOG", "SYS_BOOT", "SYS_MODULE", "SYS_PACCT", "SYS_RAWIO", "SYS_TIME"],
  ...["SYS_TTY_CONFIG", "WAKE_ALARM"],
] as const;

/**
 * Slivers outlive the daemon, so only the daemon's own process is killed at a stop. Only root's processes may report to systemd:
 * systemd-notify reports in the daemon's name. Restrictions of the unit apply to slivers too. So it uses no option that makes a mount
 * namespace (the pool would be mounted only there) or forbids new privileges or system calls (sudo, debuggers and packages in slivers would
 * fail).
 */
export function systemdUnit(): string {
  return `[Unit]
Description=Nodeyard sliver manager
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=${LAYOUT.current}/sliverd --config ${LAYOUT.config}
TimeoutStartSec=10min
WatchdogSec=60
Restart=always
RestartSec=5
KillMode=process
Delegate=yes
TasksMax=infinity
LimitNOFILE=65536
MemoryMax=1G
OOMPolicy=continue
CapabilityBoundingSet=~${UNUSED.map((name) => `CAP_${name}`).join(" ")}

[Install]
WantedBy=multi-user.target
`;
}

/** The parts of a sliver host, in the order in which they are made. */
export function partsOf(options: {
  /** Name of the bundle's folder. */
  readonly bundle: string;
  /** Folder in which the bundle was unpacked. */
  readonly from: string;
  readonly config: string;
  readonly systemd: boolean;
  /** The record of installed packages, for the removal. */
  readonly record: string;
}): readonly Part[] {
  const unit: Part[] = options.systemd
    ? [
        { kind: "file", path: LAYOUT.unit, mode: 0o644, text: systemdUnit() },
        { kind: "link", path: LAYOUT.wants, to: LAYOUT.unit },
      ]
    : [];
  const programs = `${LAYOUT.programs}/${options.bundle}`;
  return [
    { kind: "user", name: CONTROL_USER },
    { kind: "folder", path: LAYOUT.settings, mode: 0o755 },
    { kind: "folder", path: LAYOUT.state, mode: 0o700 },
    { kind: "folder", path: LAYOUT.programs, mode: 0o755 },
    { kind: "programs", path: programs, from: options.from },
    { kind: "link", path: LAYOUT.current, to: programs },
    { kind: "file", path: LAYOUT.config, mode: 0o600, text: options.config },
    { kind: "file", path: LAYOUT.record, mode: 0o600, text: options.record },
    { kind: "file", path: LAYOUT.sshd, mode: 0o644, text: sshdConfig() },
    ...unit,
  ];
}

/** Files and folders to remove, in order, with their contents. */
export const REMOVED: readonly string[] = [
  LAYOUT.wants,
  LAYOUT.unit,
  LAYOUT.sshd,
  LAYOUT.state,
  LAYOUT.run,
  LAYOUT.pid,
  LAYOUT.due,
  LAYOUT.log,
];

/**
 * Removed after the user, so that a run after an interrupted one still finds them: the copy of sshd's configuration, the record of
 * installed packages, and the programs, which do the removal. The link to the programs is removed first, so that nothing starts incomplete
 * programs.
 */
export const REMOVED_LAST: readonly string[] = [
  LAYOUT.sshdLoaded,
  LAYOUT.settings,
  LAYOUT.current,
  LAYOUT.programs,
];
