import { type KeySet, NODE_ID } from "@nodeyard/sliver-protocol";
import { EnrolError } from "./errors.ts";
import { CONTROL_USER, LAYOUT } from "./layout.ts";
import type { EnrolSettings } from "./settings.ts";

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

/** Slivers outlive the daemon, whose processes they are not: only it is killed. */
export function systemdUnit(): string {
  return `[Unit]
Description=Nodeyard sliver manager
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=${LAYOUT.current}/sliverd --config ${LAYOUT.config}
Restart=always
RestartSec=5
KillMode=process
Delegate=yes
TasksMax=infinity
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
`;
}
