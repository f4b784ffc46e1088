import { createReadStream, readFileSync } from "node:fs";
import { homedir, networkInterfaces } from "node:os";
import { createOpenstackDriver, type OpenstackHost } from "../driver.ts";
import { connect } from "./http.ts";

/** Bytes per read of an upload. */
const CHUNK = 1 << 20;

/** Files, environment and network of this host. They are read when needed, so that changes take effect. */
export const thisHost: OpenstackHost = {
  around: {
    env: process.env,
    get cwd() {
      return process.cwd();
    },
    home: homedir(),
    read: readText,
  },
  connect,
  openFile: (path) => createReadStream(path, { highWaterMark: CHUNK }),
  hasIpv6: () =>
    Object.values(networkInterfaces())
      .flat()
      .some((one) => one?.family === "IPv6" && !one.internal && /^[23]/.test(one.address)),
};

/** The `openstack` driver. */
export const openstackDriver = createOpenstackDriver(thisHost);

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
