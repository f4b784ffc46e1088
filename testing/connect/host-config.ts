import { userInfo } from "node:os";
import { stringify } from "yaml";
import type { Sshd } from "../sshd/index.ts";

/** A pool with one static host, for `jobs` at once; `ready`: nodes of it that wait for a request. */
export function hostConfig({ host, port, hostKeys }: Sshd, label: string, jobs = 1, ready = 0): string {
  const login = { username: userInfo().username, "connection-port": port, "host-key": hostKeys[0] };
  const node = { name: host, labels: label, "max-parallel-jobs": jobs, ...login };
  const pools = [{ name: "main", nodes: [node] }];
  return stringify({
    labels: [{ name: label, "min-ready": ready }],
    providers: [{ name: "lab", driver: "static", pools }],
  });
}
