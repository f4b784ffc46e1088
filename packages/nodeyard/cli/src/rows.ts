import type { Lease, NodeRecord } from "@nodeyard/model";
import { ageIn, type Column, columns, type Row } from "@nodeyard/operations/listing";
import { labelsText } from "./arguments.ts";

/** The table of `list --leases`. `--json` has the lists of labels and nodes whole. */
export const leaseColumns: readonly Column[] = [
  ...columns({ Lease: "id", State: "state", Owner: "owner" }),
  // A lease of a thousand nodes is one line that can be read.
  { heading: "Labels", key: "labels", show: ({ labels }) => labelsText(labels as readonly string[]) },
  ...columns({ Request: "request" }),
  { heading: "Nodes", key: "nodes", show: ({ nodes }) => some(nodes as readonly string[]) },
  ...columns({ "Time Left": "time_left" }),
];

/** A row of that table. `now`: milliseconds of the tree. */
export function leaseRow(lease: Lease, now: number, ages: "text" | "seconds" = "text"): Row {
  return {
    id: lease.id,
    state: lease.state,
    owner: lease.owner,
    labels: lease.labels,
    request: lease.request,
    nodes: lease.nodes,
    time_left: ageIn(ages, (lease.expires - now) / 1000),
    age: ageIn(ages, (now - lease.created) / 1000),
    expires: new Date(lease.expires).toISOString(),
  };
}

/** A few names whole; of many the first and the last. */
function some(names: readonly string[]): string {
  return names.length <= 5 ? names.join(",") : `${names[0]} ... ${names.at(-1)} (${names.length})`;
}

type Login = Pick<NodeRecord, "interfaceIp" | "connectionPort" | "connectionType" | "username">;

/** The command that logs in to a node, or undefined where SSH is not how it is reached. Safe to paste into a shell. */
export function sshLine(node: Login): string | undefined {
  const words = sshWords(node);
  return words && ["ssh", ...words.map(quote)].join(" ");
}

/** Port and target for ssh, or undefined where SSH is not how the node is reached. */
export function sshWords(node: Login): readonly string[] | undefined {
  const { interfaceIp, connectionPort, username } = node;
  if (interfaceIp === null || typeof connectionPort !== "number") return undefined;
  // A record may lack the type: then the port is that of SSH.
  if (node.connectionType !== null && node.connectionType !== "ssh") return undefined;
  const target = username === null ? interfaceIp : `${username}@${interfaceIp}`;
  const port = connectionPort === 22 ? [] : ["-p", String(connectionPort)];
  // A leading dash would be read as an option.
  return [...port, target.startsWith("-") ? `./${target}` : target];
}

/** One word of a shell; a name may come from a configuration or a cloud. */
export function quote(text: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
