import type { NodeAccess } from "./backend/backend.ts";

/**
 * Without these options ssh waits for a dead node as long as TCP does: two minutes to connect, hours on an existing connection, and the
 * lease is kept meanwhile. The command itself may be silent for any time.
 */
export const SSH_LIMITS = ["ConnectTimeout=30", "ServerAliveInterval=30", "ServerAliveCountMax=4"].flatMap(
  (limit) => ["-o", limit],
);

type Login = Pick<NodeAccess, "interface_ip" | "connection_port" | "connection_type" | "username">;

/** The command that logs in to a node, or undefined where SSH is not how it is reached. Safe to paste into a shell. */
export function sshLine(node: Login): string | undefined {
  const words = sshWords(node);
  return words && ["ssh", ...words.map(quote)].join(" ");
}

/** Port and target for ssh, or undefined where SSH is not how the node is reached. */
export function sshWords(node: Login): readonly string[] | undefined {
  const { interface_ip: address, connection_port: number, username } = node;
  if (address === null || number === null) return undefined;
  // A record may lack the type: then the port is that of SSH.
  if (node.connection_type !== null && node.connection_type !== "ssh") return undefined;
  const target = username === null ? address : `${username}@${address}`;
  const port = number === 22 ? [] : ["-p", String(number)];
  // A leading dash would be read as an option.
  return [...port, target.startsWith("-") ? `./${target}` : target];
}

/** One word of a shell; a name may come from a configuration or a cloud. */
export function quote(text: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
