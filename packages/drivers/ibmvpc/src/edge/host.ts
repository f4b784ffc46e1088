import { proxyOf } from "@nodeyard/driver";
import { openFile, USUAL_TLS, wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { createIbmDriver, type IbmHost } from "../driver.ts";
import { isOfHost } from "../sign-in.ts";

const { env } = process;

/** Environment, files and network of this host. Files are read at each login, so that changes take effect. */
export const thisHost: IbmHost = {
  around: { env, read: textIfExists },
  connect: () => wireOf(USUAL_TLS, (url) => (isOfHost(url) ? null : proxyOf(url, env, "requests"))),
  openFile,
};

/** The `ibmvpc` driver. */
export const ibmvpcDriver = createIbmDriver(thisHost);
