import { homedir, networkInterfaces } from "node:os";
import { proxyOf } from "@nodeyard/driver";
import { openFile, wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { createOpenstackDriver, type OpenstackHost } from "../driver.ts";

/** Files, environment and network of this host. They are read when needed, so that changes take effect. */
export const thisHost: OpenstackHost = {
  around: {
    env: process.env,
    // Read each time: relative places of clouds.yaml follow the process.
    get cwd() {
      return process.cwd();
    },
    home: homedir(),
    read: textIfExists,
  },
  connect: (tls) => wireOf(tls, (url) => proxyOf(url, process.env, "requests")),
  openFile,
  // Global unicast addresses are 2000::/3 (RFC 4291, 2.4), so they begin with 2 or 3.
  hasIpv6: () =>
    Object.values(networkInterfaces())
      .flat()
      .some((one) => one?.family === "IPv6" && !one.internal && /^[23]/.test(one.address)),
};

/** The `openstack` driver. */
export const openstackDriver = createOpenstackDriver(thisHost);
