import { sshKey } from "@nodeyard/sliver-protocol";
import { UnsafeTextError } from "../../errors.ts";
import { safe } from "../network/rules.ts";
import { LOGIN_ID } from "./names.ts";

/** File name of the private host key in the sliver's settings folder. */
export const HOST_KEY = "ssh_host_ed25519_key";

/** The authorized_keys file, which sshd reads as root. Keys were checked before, and are checked again here. Throws GrammarError. */
export function authorizedKeys(keys: readonly string[]): string {
  return keys.map((key) => `${sshKey(key)}\n`).join("");
}

/** Number of processors that corresponds to a CPU cap, for programs that start a thread per processor; undefined without a cap. */
function processors({ cpuCap }: { readonly cpuCap: number }): number | undefined {
  return cpuCap === 0 ? undefined : Math.ceil(cpuCap / 1000);
}

/** `logins`: the only users who may log in, with any of the keys. */
export function sshdConfig(logins: readonly string[], limits: { readonly cpuCap: number }): string {
  const cpus = processors(limits);
  const settings: readonly (readonly [string, string])[] = [
    ["HostKey", `/etc/nodeyard/${HOST_KEY}`],
    ["AuthorizedKeysFile", "/etc/nodeyard/authorized_keys"],
    ["AllowUsers", logins.map(login).join(" ")],
    ["AuthenticationMethods", "publickey"],
    ["PermitRootLogin", "prohibit-password"],
    ["UsePAM", "no"],
    ["UseDNS", "no"],
    ["PidFile", "none"],
    // High, so that many clients that read the host key do not make sshd refuse the launcher.
    ["MaxStartups", "100:30:200"],
    ["Subsystem", "sftp internal-sftp"],
    // nproc counts the cores of the scheduler, not the CPU cap, but it honours this variable.
    ...(cpus === undefined ? [] : [["SetEnv", `OMP_NUM_THREADS=${cpus}`] as const]),
  ];
  return settings.map(([name, value]) => `${name} ${value}\n`).join("");
}

/**
 * In cgroup v2 a group with processes of its own gives its controllers to no group below it. So the first process moves away, before there
 * are others, and container engines in a sliver can limit what they run. For a group of this name, as systemd has one, lxcfs shows the limits
 * of the group above.
 */
const DELEGATE = `groups=/sys/fs/cgroup
if [ -w $groups/cgroup.subtree_control ] && mkdir -p $groups/init.scope && echo $$ >$groups/init.scope/cgroup.procs; then
  for controller in $(cat $groups/cgroup.controllers); do echo "+$controller" >$groups/cgroup.subtree_control; done
fi
`;

/** An engine looks for its groups in every hierarchy that is mounted, and fails where it may make none. */
const UNSEEN = `for kept in blkio freezer; do
  umount /sys/fs/cgroup/$kept 2>/dev/null && rmdir /sys/fs/cgroup/$kept
done
`;

/**
 * The script that LXC starts, on the console: it runs the sliver's init script as its login, and its sshd, which reaps orphaned processes.
 * `nesting`: containers may run in the sliver.
 */
export function initScript(user: string, limits: { readonly cpuCap: number }, nesting: boolean): string {
  const cpus = processors(limits);
  return `#!/bin/sh
${nesting ? DELEGATE + UNSEEN : ""}mkdir -p /run/sshd
if [ -s /etc/nodeyard/initscript ]; then
  cd "/home/${login(user)}" || cd /
  ${cpus === undefined ? "" : `OMP_NUM_THREADS=${cpus} `}HOME="/home/${login(user)}" USER=${login(user)} setsid setpriv --reuid=${LOGIN_ID} --regid=${LOGIN_ID} --clear-groups \\
    /bin/sh /etc/nodeyard/initscript 2>&1 </dev/null | tee -a /run/nodeyard-initscript.log &
fi
cd /
exec /usr/sbin/sshd -D -e -f /etc/nodeyard/sshd_config </dev/null
`;
}

/** Lines for /etc/passwd, group and shadow. */
export function loginLines(user: string): { passwd: string; group: string; shadow: string } {
  const name = login(user);
  return {
    passwd: `${name}:x:${LOGIN_ID}:${LOGIN_ID}::/home/${name}:/bin/bash`,
    group: `${name}:x:${LOGIN_ID}:`,
    shadow: `${name}:*:19000:0:99999:7:::`,
  };
}

/** Files of /etc with the sliver's name. Throws UnsafeTextError. */
export function nameFiles(user: string, address: string): { hostname: string; hosts: string } {
  const name = login(user);
  return { hostname: `${name}\n`, hosts: `127.0.0.1 localhost\n${safe("IPv4 address", address)} ${name}\n` };
}

/** Allows the login to become root of its own sliver. Throws UnsafeTextError. */
export function sudoersLine(user: string): string {
  return `${login(user)} ALL=(ALL) NOPASSWD: ALL\n`;
}

/** Replaces the line of the same name, or appends `line`. */
export function withLine(text: string, line: string): string {
  const name = line.split(":")[0];
  const others = text.split("\n").filter((one) => one !== "" && one.split(":")[0] !== name);
  return `${[...others, line].join("\n")}\n`;
}

function login(value: string): string {
  if (!/^(?:root|ny-\d{2,4})$/.test(value))
    throw new UnsafeTextError(`${JSON.stringify(value)} is not a login of a sliver`);
  return value;
}

const TYPE = "ssh-ed25519";
/** An unencrypted key is padded to this block size, in bytes. */
const BLOCK = 8;
const LINE = 70;

/**
 * The private key file for sshd in OpenSSH's own format (PROTOCOL.key), which all versions read; they read Ed25519 in PKCS#8 only since
 * 9.6.
 * `seed` and `publicKey` are the 32 bytes each of RFC 8032.
 */
export function openSshPrivateKey(seed: Uint8Array, publicKey: Uint8Array, comment: string): string {
  const known = publicBlob(publicKey);
  // Two equal numbers, by which a reader checks the decryption. Here nothing is encrypted.
  const check = Buffer.from(publicKey.subarray(0, 4));
  const secret = Buffer.concat([
    check,
    check,
    known,
    text(Buffer.concat([seed, publicKey])),
    text(Buffer.from(comment, "latin1")),
  ]);
  const padding = Buffer.from(Array.from({ length: -secret.length & (BLOCK - 1) }, (_, at) => at + 1));
  const whole = Buffer.concat([
    Buffer.from("openssh-key-v1\0", "latin1"),
    ...["none", "none", ""].map((one) => text(Buffer.from(one, "latin1"))),
    Buffer.from([0, 0, 0, 1]),
    text(known),
    text(Buffer.concat([secret, padding])),
  ]);
  const lines = whole.toString("base64").match(new RegExp(`.{1,${LINE}}`, "g"))!;
  return ["-----BEGIN OPENSSH PRIVATE KEY-----", ...lines, "-----END OPENSSH PRIVATE KEY-----", ""].join(
    "\n",
  );
}

function publicBlob(publicKey: Uint8Array): Buffer {
  return Buffer.concat([text(Buffer.from(TYPE, "latin1")), text(publicKey)]);
}

/** A string of RFC 4251: its length, then its bytes. */
function text(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
