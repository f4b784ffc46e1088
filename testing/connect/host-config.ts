import { userInfo } from "node:os";
import { stringify } from "yaml";
import type { Sshd } from "../sshd/index.ts";

/** A pool with one static host. */
export function hostConfig({ host, port, hostKeys }: Sshd, label: string): string {
  const { username } = userInfo();
  const node = { name: host, labels: label, username, "connection-port": port, "host-key": hostKeys[0] };
  const pools = [{ name: "main", nodes: [node] }];
  return stringify({ labels: [{ name: label }], providers: [{ name: "lab", driver: "static", pools }] });
}
