import type { HttpRequest } from "@nodeyard/driver";
import type { OpenstackHost } from "@nodeyard/driver-openstack";

/** What was sent to the cloud. */
export interface Counts {
  reads: number;
  /** Creates, deletes, actions. */
  changes: number;
}

/** The host with its calls counted, logins apart. */
export function counted(host: OpenstackHost): { readonly host: OpenstackHost; readonly counts: Counts } {
  const counts: Counts = { reads: 0, changes: 0 };
  const count = ({ method, url }: HttpRequest) => {
    if (url.endsWith("/auth/tokens")) return;
    if (method === "GET") counts.reads++;
    else counts.changes++;
  };
  return {
    counts,
    host: {
      ...host,
      connect(tls) {
        const real = host.connect(tls);
        return {
          close: () => real.close(),
          send(request) {
            count(request);
            return real.send(request);
          },
        };
      },
    },
  };
}
