import { ageOf, type Column, columns, timeLeft } from "@nodeyard/operations/listing";
import { labelsText } from "./arguments.ts";
import type { NodeAccess } from "./backend/backend.ts";

/** The table of `list --leases`. `--json` has the lists of labels and nodes whole. */
export const leaseColumns: readonly Column[] = [
  ...columns({ Lease: "id", State: "state", Owner: "owner" }),
  // A lease of a thousand nodes is one line that can be read.
  { heading: "Labels", key: "labels", show: ({ labels }) => labelsText(labels as readonly string[]) },
  ...columns({ Request: "request" }),
  { heading: "Nodes", key: "nodes", show: ({ nodes }) => some(nodes as readonly string[]) },
  ...columns({ "Time Left": ["time_left", timeLeft] }),
];

/** What only `--json` shows of a lease. */
export const leaseJson = columns({ Expires: "expires", Age: ["age", ageOf("created")] });

/** A few names whole; of many the first and the last. */
function some(names: readonly string[]): string {
  return names.length <= 5 ? names.join(",") : `${names[0]} ... ${names.at(-1)} (${names.length})`;
}

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
