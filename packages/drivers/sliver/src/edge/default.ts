import type { Driver } from "@nodeyard/driver";
import { readSigningKeys, SliverClient, sshTransport, unixTransport } from "@nodeyard/sliver-protocol";
import type { SliverProviderConfig } from "../config.ts";
import { createSliverDriver } from "../driver.ts";

/** The `sliver` driver. */
export const sliverDriver: Driver<SliverProviderConfig> = createSliverDriver({
  connect: ({ at }) => new SliverClient("socket" in at ? unixTransport(at.socket) : sshTransport(at.ssh)),
  readKeys: readSigningKeys,
});
