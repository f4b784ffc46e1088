import { createReadStream } from "node:fs";
import { proxyOf } from "@nodeyard/driver";
import { wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { createIbmDriver, type IbmHost } from "../driver.ts";
import { isOfHost } from "../sign-in.ts";

const { env } = process;
const CONNECTIONS = 16;
/** Bytes per read of an upload. */
const CHUNK = 1 << 20;
const TLS = { verify: true, ca: null, cert: null, key: null };

/** Environment, files and network of this host. Files are read at each login, so that changes take effect. */
export const thisHost: IbmHost = {
  around: { env, read: textIfExists },
  connect: () => wireOf(TLS, (url) => (isOfHost(url) ? null : proxyOf(url, env, "requests")), CONNECTIONS),
  openFile: (path) => createReadStream(path, { highWaterMark: CHUNK }),
};

/** The `ibmvpc` driver. */
export const ibmvpcDriver = createIbmDriver(thisHost);
