import { CONTROL_USER, type KeySet, NODE_ID } from "@nodeyard/sliver-protocol";
import { EnrolError } from "../errors.ts";
import { packagesOf } from "../isolation/edge/run.ts";
import type { Part } from "./plan.ts";
import type { EnrolSettings } from "./settings.ts";

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
  sshdLoaded: "/run/nodeyard-sliverd.sshd",
  /** There while files of the daemon are newer than what it was started with; a boot starts it with what there is. */
  due: "/run/nodeyard-sliverd.due",
} as const;

/** Programs without which slivers cannot be made, and the Debian packages that hold them. */
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

/** Wanted by `container` slivers whose image is made on the machine. */
export const IMAGE_PROGRAMS = packagesOf(["mmdebstrap"]);

/**
 * The daemon's file. A key set that the machine was rotated to since stays the newer one there. `node`: absent where many machines are
 * made of one image, each of which finds a name of its own. What the machine has the daemon finds out itself.
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
    ...(node === undefined ? {} : { node }),
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

/** Only for the control accounts' user; what other users of the machine may do stays as it is. */
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

/** Capabilities that neither the daemon nor a program that it starts uses. */
const UNUSED = [
  ...["AUDIT_CONTROL", "AUDIT_READ", "BLOCK_SUSPEND", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN"],
  ...["MAC_OVERRIDE", "SYSLOG", "SYS_BOOT", "SYS_MODULE", "SYS_PACCT", "SYS_RAWIO", "SYS_TIME"],
  ...["SYS_TTY_CONFIG", "WAKE_ALARM"],
] as const;

/**
 * Slivers outlive the daemon, whose processes they are not: only it is killed. Only it reports to systemd, too: systemd-notify may do so in
 * its name, because it is root's. What it may not do here, slivers may not do either: no option that makes a namespace of mounts (the pool
 * would be mounted in there), or forbids new privileges or system calls (`sudo`, debuggers and packages in slivers would fail).
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

/** Everything that makes a machine a sliver host, in the order in which it is made. */
export function partsOf(options: {
  /** Name of the bundle's own folder. */
  readonly bundle: string;
  /** Where it was unpacked. */
  readonly from: string;
  readonly config: string;
  readonly systemd: boolean;
  /** What must be remembered to take all of it back. */
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

/** What is removed with all that is in it, last first. */
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
 * What is removed after the user, so that a run after an interrupted one finds it: what sshd loaded, the record of installed packages,
 * and the programs, which do the removal. The link to the programs goes first, so that nothing starts from half of them.
 */
export const REMOVED_LAST: readonly string[] = [
  LAYOUT.sshdLoaded,
  LAYOUT.settings,
  LAYOUT.current,
  LAYOUT.programs,
];
