import { sshKey } from "@nodeyard/sliver-protocol";
import { UnsafeTextError } from "../errors.ts";
import { ipv4 } from "../network/index.ts";
import { LOGIN_ID } from "./names.ts";

export const HOST_KEY = "ssh_host_ed25519_key";

/** Text that sshd reads as root. Keys were read once already; here nothing is taken on trust. Throws GrammarError. */
export function authorizedKeys(keys: readonly string[]): string {
  return keys.map((key) => `${sshKey(key)}\n`).join("");
}

/** `logins`: who may log in; nobody else can, with whatever key. */
export function sshdConfig(logins: readonly string[]): string {
  const settings: readonly (readonly [string, string])[] = [
    ["HostKey", `/etc/nodeyard/${HOST_KEY}`],
    ["AuthorizedKeysFile", "/etc/nodeyard/authorized_keys"],
    ["AllowUsers", logins.map(login).join(" ")],
    ["AuthenticationMethods", "publickey"],
    ["PermitRootLogin", "prohibit-password"],
    ["UsePAM", "no"],
    ["UseDNS", "no"],
    ["PidFile", "none"],
    // A sliver that is asked for its key by many must not turn the launcher away.
    ["MaxStartups", "100:30:200"],
    ["Subsystem", "sftp internal-sftp"],
  ];
  return settings.map(([name, value]) => `${name} ${value}\n`).join("");
}

/** What LXC starts: the sliver's init script as its login, and its sshd, which reaps what others leave. */
export function initScript(user: string): string {
  return `#!/bin/sh
mkdir -p /run/sshd
if [ -s /etc/nodeyard/initscript ]; then
  cd "/home/${login(user)}" || cd /
  HOME="/home/${login(user)}" USER=${login(user)} setsid setpriv --reuid=${LOGIN_ID} --regid=${LOGIN_ID} --clear-groups \\
    /bin/sh /etc/nodeyard/initscript >>/run/nodeyard-initscript.log 2>&1 </dev/null &
fi
cd /
exec /usr/sbin/sshd -D -e -f /etc/nodeyard/sshd_config </dev/null
`;
}

/** Lines of /etc/passwd, group and shadow for the login. */
export function loginLines(user: string): { passwd: string; group: string; shadow: string } {
  const name = login(user);
  return {
    passwd: `${name}:x:${LOGIN_ID}:${LOGIN_ID}::/home/${name}:/bin/bash`,
    group: `${name}:x:${LOGIN_ID}:`,
    shadow: `${name}:*:19000:0:99999:7:::`,
  };
}

/** Files of /etc that tell a sliver who it is. Throws UnsafeTextError. */
export function nameFiles(user: string, address: string): { hostname: string; hosts: string } {
  const name = login(user);
  return { hostname: `${name}\n`, hosts: `127.0.0.1 localhost\n${ipv4(address)} ${name}\n` };
}

/** What lets the login become root of its own sliver. Throws UnsafeTextError. */
export function sudoersLine(user: string): string {
  return `${login(user)} ALL=(ALL) NOPASSWD: ALL\n`;
}

/** Puts `line` where the file has its name already, else at its end. */
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
