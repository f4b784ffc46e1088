import { readSigningKeys, SliverClient, sshTransport } from "@nodeyard/sliver-protocol";
import { sliverPaths } from "../places.ts";
import type { SliverAccess } from "../slot-slivers.ts";

/** Over SSH, with the keys of a state folder: read when they are needed, since most launchers need none. */
export function sliverAccess(stateFolder: string): SliverAccess {
  const { signingKeys, controlKey } = sliverPaths(stateFolder);
  return {
    connect: ({ host, port, hostKeys }) =>
      new SliverClient(sshTransport({ host, port, hostKeys, identityFile: controlKey })),
    keys: () => readSigningKeys(signingKeys),
  };
}
