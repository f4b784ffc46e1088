import { type Driver, DriverError } from "@nodeyard/driver";
import { readSigningKeys, SliverClient, sliverPaths, sshTransport } from "@nodeyard/sliver-protocol";
import type { MetastaticProvider } from "../config.ts";
import { createMetastaticDriver } from "../driver.ts";

/** The `metastatic` driver. It reaches slivers by SSH; the keys of the state folder are read when needed: most providers need none. */
export const metastaticDriver: Driver<MetastaticProvider> = createMetastaticDriver((stateFolder) => {
  const places = () => {
    if (stateFolder !== undefined) return sliverPaths(stateFolder);
    throw new DriverError("configuration", "this process has no state folder with the keys of sliver hosts");
  };
  return {
    connect: ({ host, port, hostKeys }) =>
      new SliverClient(sshTransport({ host, port, hostKeys, identityFile: places().controlKey })),
    keys: () => readSigningKeys(places().signingKeys),
  };
});
