import { openAsBlob, readFileSync } from "node:fs";
import { wireOf } from "@nodeyard/driver/http";
import { createLxdDriver, type LxdHost } from "../driver.ts";

/** Connections to one server at once: each launch and each removal waits on one for its operation to end. */
const CONNECTIONS = 128;

/** Files and network of this host. No proxy: the server is the installation's own. */
export const thisHost: LxdHost = {
  read: (path) => readFileSync(path, "utf8"),
  connect: (tls) => wireOf(tls, () => null, CONNECTIONS),
  blob: openAsBlob,
};

/** The `lxd` driver. */
export const lxdDriver = createLxdDriver(thisHost);
