import { createReadStream } from "node:fs";
import { wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { createLxdDriver, type LxdHost } from "../driver.ts";

/** Connections to one server at once: each launch and each removal waits on one for its operation to end. */
const CONNECTIONS = 128;
/** Bytes per read of an upload. */
const CHUNK = 1 << 20;

/** Files and network of this host. Files are read when needed, so that changes take effect. No proxy: the server is its own. */
export const thisHost: LxdHost = {
  read: textIfExists,
  connect: (route) => wireOf({ verify: true, ...route }, () => null, CONNECTIONS),
  openFile: (path) => createReadStream(path, { highWaterMark: CHUNK }),
};

/** The `lxd` driver. */
export const lxdDriver = createLxdDriver(thisHost);
