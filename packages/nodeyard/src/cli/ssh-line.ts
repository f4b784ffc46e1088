import type { NodeRecord } from "@nodeyard/model";

/** The command that logs in to a node, or undefined where SSH is not how it is reached. Safe to paste into a shell. */
export function sshLine(node: NodeRecord): string | undefined {
  const { interfaceIp, connectionPort, username } = node;
  if (interfaceIp === null || typeof connectionPort !== "number") return undefined;
  if (node.connectionType !== null && node.connectionType !== "ssh") return undefined;
  const target = username === null ? interfaceIp : `${username}@${interfaceIp}`;
  const port = connectionPort === 22 ? [] : ["-p", String(connectionPort)];
  return ["ssh", ...port, quote(target)].join(" ");
}

/** A name may come from a configuration or a cloud; a leading dash would be read as an option. */
function quote(text: string): string {
  const safe = text.startsWith("-") ? `./${text}` : text;
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(safe) ? safe : `'${safe.replaceAll("'", `'\\''`)}'`;
}
